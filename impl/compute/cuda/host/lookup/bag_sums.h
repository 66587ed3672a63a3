// Sums of bags as they travel, looked up in tables of a device (compute::BagSums).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compute/cuda/host/bag_index.h"
#include "compute/cuda/host/lookup/row_lookups.h"
#include "compute/lookup_operations.h"

namespace shardrec::compute::cuda::host {

class BagSummation {
 public:
  explicit BagSummation(std::shared_ptr<Stream> stream);

  // Enqueued when the call returns; the list of blocks is copied.
  void run(std::span<const BagSums> blocks);

 private:
  void mark_present();

  std::shared_ptr<Stream> stream_;
  BagIndex index_;
  RowLookups lookups_;
  Arguments arguments_;
  std::vector<const Bags*> bags_;
  std::vector<shardrec_cuda_bag_bits> present_;
  std::vector<int64_t> first_word_;
};

}  // namespace shardrec::compute::cuda::host
