// The loss scale of a stack on a device (dense/loss_scale.h), and the count of its steps, in memory of the device: what
// a step does by them is decided there, and no call waits but upload() and download().
//
// Throws OUT_OF_MEMORY, DEVICE_ERROR. Thread rule: that of the context.
#pragma once

#include <cstdint>

#include "compute/buffer.h"
#include "compute/cuda/host/memory.h"
#include "dense/device/context.h"
#include "dense/loss_scale.h"
#include "dense/parameters.h"

namespace shardrec::dense::device {

class LossScaling {
 public:
  // What the host has of it. Both outlive this object.
  LossScaling(Context& context, LossScale& host, Parameters& parameters);

  // The device has what the host has, and the other way round: scale, counts, steps of the parameters. Return when
  // that is so.
  void upload();
  void download();

  // For operations that are enqueued. After the first upload().
  shardrec_cuda_loss_scale* there() const noexcept;

  // In front of all gradients of a backward, and behind them.
  void begin_backward();
  void end_backward();
  // Begins a step on the parameters, whose gradients are on the device.
  void begin_step(const float* gradients);

 private:
  Context& context_;
  LossScale& host_;
  Parameters& parameters_;
  compute::Buffer there_;
  compute::cuda::host::PinnedRoom pinned_;
  bool in_backward_ = false;
};

}  // namespace shardrec::dense::device
