// What a stack of layers has of the device that it is on.
//
// Thread rule: who holds the mutex. A set of DDP parameters orders its stream by the stack's while another thread may be
// in a call of the stack.
#pragma once

#include <mutex>
#include <optional>

#include "compute/cuda/host/clock/stream_trace.h"
#include "dense/device/caller_matrices.h"
#include "dense/device/context.h"
#include "dense/device/gemm.h"
#include "dense/device/loss.h"
#include "dense/device/loss_scaling.h"
#include "dense/device/parameters.h"
#include "dense/device/rounded_weights.h"
#include "dense/layers/on_device.h"
#include "dense/loss_scale.h"
#include "dense/parameters.h"
#include "dense/precision.h"

namespace shardrec::dense {

struct DeviceStack {
  using Span = compute::cuda::host::StreamTrace::Span;

  // Throws as the context and device::Gemm do. What the host has of parameters and of their scale outlives it.
  DeviceStack(const device::ContextOptions& options, Precision precision, Parameters& host,
              LossScale& host_scale)
      : context(options),
        gemm(context.shared_stream()),
        parameters(context, host),
        rounded_weights(context, element_of(precision)) {
    if (precision == Precision::kFloat16) scaling.emplace(context, host_scale, host);
  }

  DeviceOperations operations(device::Multiplier multiplier) noexcept {
    return {context.stream(), gemm, multiplier, forward_word(), loss_scale()};
  }

  // The number of a forward that drops elements, for it and its backward. It is stored ahead of their operations, which
  // are those of other forwards then.
  void store_forward(uint32_t number) {
    forward_number.resize(sizeof number);
    device::store_word(context.stream(), forward_word(), number);
    context.stream().submit();
  }
  uint32_t* forward_word() noexcept {
    return static_cast<uint32_t*>(static_cast<void*>(forward_number.data()));
  }
  shardrec_cuda_loss_scale* loss_scale() const noexcept {
    return scaling ? scaling->there() : nullptr;
  }

  // The device has the parameters of the host from now on, if it does not. Throws OUT_OF_MEMORY, DEVICE_ERROR.
  void receive() {
    if (!host_is_newer || !has_parameters) return;
    context.follow_caller();
    parameters.upload();
    if (scaling) scaling->upload();
    host_is_newer = false;
    weights_are_rounded = false;
  }
  // The same, and nothing that is enqueued touches them any more.
  void settle() {
    receive();
    context.wait();
  }
  // The host has those of the device.
  void send_back() {
    if (host_is_newer || !has_parameters) return;
    context.follow_caller();
    parameters.download();
    if (scaling) scaling->download();
  }
  // The same of the scale and the counts alone.
  void send_back_scale() {
    if (scaling && !host_is_newer) scaling->download();
  }

  // What the caller gave, on the device.
  core::Matrix copied(device::CallerMatrices& matrices, const device::CallerMatrix& given,
                      device::HostMatrix& copy) {
    if (given.on_device) return matrices.read(given, copy);
    const Span span(trace, "dense copy");
    return matrices.read(given, copy);
  }

  void zero_gradients() {
    receive();
    context.follow_caller();
    device::fill(context.stream(), parameters.gradients(), 0, parameters.size());
    context.hold_up_caller();
  }

  std::mutex mutex;
  device::Context context;
  compute::cuda::host::StreamTrace trace{context.shared_stream()};
  device::Gemm gemm;
  device::DeviceParameters parameters;
  device::RoundedWeights rounded_weights;
  std::optional<device::LossScaling> scaling;  // of FLOAT16
  device::HostMatrix input{context};
  device::HostMatrix output{context};
  device::HostMatrix output_gradient{context};
  device::HostMatrix input_gradient{context};
  device::DeviceLoss loss{context};
  compute::Buffer forward_number{context.memory()};
  compute::Buffer vector_sums{context.memory()};  // of a layer in units
  bool has_parameters = true;                     // else units have them
  bool host_is_newer = true;         // its parameters have changed behind the last receive()
  bool weights_are_rounded = false;  // as the parameters are now
};

}  // namespace shardrec::dense
