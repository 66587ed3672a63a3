// What a stack of layers has of the device that it is on.
//
// Thread rule: who holds the mutex. A set of DDP parameters orders its stream by the stack's while another thread may be
// in a call of the stack.
#pragma once

#include <mutex>

#include "dense/device/caller_matrices.h"
#include "dense/device/context.h"
#include "dense/device/gemm.h"
#include "dense/device/loss.h"
#include "dense/device/parameters.h"
#include "dense/device/rounded_weights.h"
#include "dense/layers/on_device.h"
#include "dense/parameters.h"

namespace shardrec::dense {

struct DeviceStack {
  // Throws as the context and device::Gemm do. The host's parameters outlive it.
  DeviceStack(const device::ContextOptions& options, const Parameters& host)
      : context(options), gemm(context.shared_stream()), parameters(context, host) {}

  DeviceOperations operations(device::Multiplier multiplier) noexcept {
    return {context.stream(), gemm, multiplier, forward_word()};
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

  // The device has the parameters of the host from now on, if it does not. Throws OUT_OF_MEMORY, DEVICE_ERROR.
  void receive() {
    if (!host_is_newer) return;
    context.follow_caller();
    parameters.upload();
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
    if (host_is_newer) return;
    context.follow_caller();
    parameters.download();
  }

  void zero_gradients() {
    receive();
    context.follow_caller();
    device::fill(context.stream(), parameters.gradients(), 0, parameters.size());
    context.hold_up_caller();
  }

  std::mutex mutex;
  device::Context context;
  device::Gemm gemm;
  device::DeviceParameters parameters;
  device::RoundedWeights rounded_weights{context};
  device::HostMatrix input{context};
  device::HostMatrix output{context};
  device::HostMatrix output_gradient{context};
  device::HostMatrix input_gradient{context};
  device::DeviceLoss loss{context};
  compute::Buffer forward_number{context.memory()};
  bool host_is_newer = true;         // its parameters have changed behind the last receive()
  bool weights_are_rounded = false;  // as the parameters are now
};

}  // namespace shardrec::dense
