// Rows of a device that are below bounds (compute::RowSearch).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compute/cuda/host/arguments.h"
#include "compute/cuda/host/results.h"
#include "compute/slot_operations.h"

namespace shardrec::compute::cuda::host {

class RowSearches {
 public:
  explicit RowSearches(std::shared_ptr<Stream> stream);

  // before of all searches is there when the call returns.
  void run(std::span<const RowSearch> searches);

 private:
  std::shared_ptr<Stream> stream_;
  Arguments arguments_;
  Results results_;
  std::vector<shardrec_cuda_row_bound> bounds_;
};

}  // namespace shardrec::compute::cuda::host
