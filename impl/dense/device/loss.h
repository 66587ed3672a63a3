// The loss of dense/loss.h on a device, with the bits of the CPU.
//
// A label outside 0 .. 1 is noticed by the device, and told by the next call that asks for the mean.
//
// Thread rule: that of the context.
#pragma once

#include <cstdint>

#include "compute/buffer.h"
#include "compute/cuda/host/memory.h"
#include "dense/device/caller_matrices.h"
#include "dense/device/context.h"

namespace shardrec::dense::device {

// Vectors of one size, each as a matrix of one row. data null of the last two: not wanted.
struct LossVectors {
  CallerMatrix logits;
  CallerMatrix labels;
  CallerMatrix probabilities;
  CallerMatrix gradient;
};

class DeviceLoss {
 public:
  explicit DeviceLoss(Context& context);

  // Enqueues, and where the mean is wanted waits for it. mean null: not wanted. Throws INVALID_ARGUMENT for a label
  // outside 0 .. 1 of this call, or of one since the last that asked for the mean, with the first position in its
  // batch; and as CallerMatrices does.
  void compute(const LossVectors& vectors, double* mean);

 private:
  // What the host is told, of the device's memory.
  struct Results {
    double total;
    uint64_t wrong;  // ~i for a sample i whose label is outside; 0: none
  };

  Results* there() noexcept { return static_cast<Results*>(static_cast<void*>(results_.data())); }
  void clear_wrong();

  Context& context_;
  HostMatrix logits_;
  HostMatrix labels_;
  HostMatrix probabilities_;
  HostMatrix gradient_;
  compute::Buffer sums_;  // of blocks
  compute::Buffer results_;
  bool is_clear_ = false;  // results_ begin with nothing wrong
  compute::cuda::host::PinnedRoom pinned_;
  bool has_untold_calls_ =
      false;  // that may have noticed a label since the last one that asked for the mean
};

}  // namespace shardrec::dense::device
