// Sums and conversions of runs of elements of any floating dtype on a device (jobs/buckets.h), with the bits of the
// CPU's. What they name stays as it is until the stream has come past them.
//
// Throws OUT_OF_MEMORY, DEVICE_ERROR. Thread rule: that of the stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compute/cuda/host/arguments.h"
#include "compute/cuda/host/launch_list.h"
#include "shardrec/tensor.h"

namespace shardrec::dense::device {

// As jobs/buckets.h names the floating dtypes.
int32_t element_of(shardrec_dtype dtype) noexcept;

// The runs of a launch, and of the next one; steady lists are copied once.
class ElementRuns {
 public:
  explicit ElementRuns(std::shared_ptr<compute::cuda::host::Stream> stream);

  // Begins a list of runs of so many inputs each.
  void begin(size_t addends);
  // inputs: null: zeros. out may be the only input.
  void add(std::span<const std::byte* const> inputs, std::byte* out, int64_t count);
  // job: but for the runs and how many inputs they have.
  void launch(shardrec_cuda_rank_sum job);

 private:
  std::shared_ptr<compute::cuda::host::Stream> stream_;
  compute::cuda::host::Arguments arguments_;
  compute::cuda::host::LaunchList<shardrec_cuda_bucket_run> list_;
  std::vector<const void*> inputs_;  // [runs, addends]
  size_t addends_ = 1;
};

}  // namespace shardrec::dense::device
