// Where the gradient rows of a device lie (compute::GradientBlock), and occurrences of rows that have one
// each (compute::SingleOccurrences).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compute/cuda/host/bag_index.h"
#include "compute/cuda/host/tiles.h"
#include "compute/gradient_operations.h"
#include "compute/slot_operations.h"

namespace shardrec::compute::cuda::host {

class GradientRows {
 public:
  explicit GradientRows(std::shared_ptr<Stream> stream);

  // Enqueued when the call returns; the list of blocks is copied.
  void locate(std::span<const GradientBlock> blocks);

 private:
  std::shared_ptr<Stream> stream_;
  BagIndex index_;
  Arguments arguments_;
  Tiles tiles_;
  std::vector<const Bags*> indexed_;  // of the blocks by sample
  std::vector<shardrec_cuda_gradient_block> blocks_;
};

// Enqueued when the call returns. bags may be null: they are not wanted then.
void number_occurrences(const SingleOccurrences& rows, Stream& stream);

}  // namespace shardrec::compute::cuda::host
