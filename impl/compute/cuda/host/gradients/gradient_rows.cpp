#include "compute/cuda/host/gradients/gradient_rows.h"

#include <utility>

#include "core/error.h"

namespace shardrec::compute::cuda::host {

GradientRows::GradientRows(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)), index_(stream_), arguments_(stream_) {}

void GradientRows::locate(std::span<const GradientBlock> blocks) {
  indexed_.clear();
  for (const GradientBlock& block : blocks) {
    if (block.by_sample) indexed_.push_back(block.bags);
  }
  auto indexed = index_.run(indexed_).begin();
  blocks_.clear();
  tiles_.clear();
  for (const GradientBlock& block : blocks) {
    blocks_.push_back({.data = block.data,
                       .stride = block.stride,
                       .sample = block.by_sample ? indexed->sample : nullptr,
                       .rows = block.by_sample ? block.bags->bags : block.rows,
                       .out = block.out});
    if (block.by_sample) ++indexed;
    tiles_.add(blocks_.back().rows);
  }
  arguments_.begin(Arguments::bytes_of<shardrec_cuda_gradient_block>(blocks_.size()) +
                   tiles_.bytes());
  const shardrec_cuda_gradient_blocks job{
      .blocks = arguments_.add(std::span<const shardrec_cuda_gradient_block>(blocks_)),
      .tiles = tiles_.add_to(arguments_)};
  arguments_.send();
  require(table().locate_gradients(stream_->handle(), &job),
          core::sentence("locate gradients on device ", stream_->device()));
}

void number_occurrences(const SingleOccurrences& rows, Stream& stream) {
  const shardrec_cuda_single_occurrences job{
      .rows = rows.rows, .run = rows.run, .bags = rows.bags, .blocks = rows.blocks};
  require(table().number_occurrences(stream.handle(), &job),
          core::sentence("number occurrences on device ", stream.device()));
}

}  // namespace shardrec::compute::cuda::host
