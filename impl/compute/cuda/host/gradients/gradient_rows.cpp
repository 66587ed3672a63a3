#include "compute/cuda/host/gradients/gradient_rows.h"

namespace shardrec::compute::cuda::host {

void GradientRows::list(std::span<const TouchedRows> shards, uint32_t* unaligned) {
  indexed_.clear();
  for (const TouchedRows& shard : shards) {
    for (const GradientBlock& block : shard.located) {
      if (block.by_sample) indexed_.push_back(block.bags);
    }
  }
  auto indexed = index_.run(indexed_).begin();
  blocks_.clear();
  tiles_.clear();
  for (size_t s = 0; s < shards.size(); ++s) {
    for (const GradientBlock& block : shards[s].located) {
      blocks_.push_back({.data = block.data,
                         .stride = block.stride,
                         .sample = block.by_sample ? indexed->sample : nullptr,
                         .rows = block.by_sample ? block.bags->bags : block.rows,
                         .out = block.out,
                         .unaligned = unaligned + s});
      if (block.by_sample) ++indexed;
      tiles_.add(blocks_.back().rows);
    }
  }
}

void number_occurrences(const SingleOccurrences& rows, Stream& stream) {
  const shardrec_cuda_single_occurrences job{
      .rows = rows.rows, .run = rows.run, .bags = rows.bags, .blocks = rows.blocks};
  require(table().number_occurrences(stream.handle(), &job), "number occurrences on device ",
          stream.device());
}

}  // namespace shardrec::compute::cuda::host
