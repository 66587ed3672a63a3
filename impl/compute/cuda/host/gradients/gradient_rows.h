// Where the gradient rows of a device lie (compute::GradientBlock), and occurrences of rows that have one
// each (compute::SingleOccurrences).
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "compute/cuda/host/bag_index.h"
#include "compute/cuda/host/tiles.h"
#include "compute/gradient_operations.h"
#include "compute/row_operations.h"

namespace shardrec::compute::cuda::host {

// The gradient rows of the shards of a step.
class GradientRows {
 public:
  explicit GradientRows(std::shared_ptr<Stream> stream) : index_(std::move(stream)) {}

  // unaligned: by shard, on the device. Enqueues what the operation needs that writes the addresses.
  void list(std::span<const TouchedRows> shards, uint32_t* unaligned);

  // What the lists take of that operation's arguments, and the lists there.
  size_t bytes() const {
    return Arguments::bytes_of<shardrec_cuda_gradient_block>(blocks_.size()) + tiles_.bytes();
  }
  shardrec_cuda_gradient_blocks add_to(Arguments& arguments) const {
    return {.blocks = arguments.add(std::span<const shardrec_cuda_gradient_block>(blocks_)),
            .tiles = tiles_.add_to(arguments)};
  }

 private:
  BagIndex index_;
  Tiles tiles_;
  std::vector<const Bags*> indexed_;  // of the blocks by sample
  std::vector<shardrec_cuda_gradient_block> blocks_;
};

// Enqueued when the call returns. bags may be null: they are not wanted then.
void number_occurrences(const SingleOccurrences& rows, Stream& stream);

}  // namespace shardrec::compute::cuda::host
