#include "compute/cuda/host/bag_index.h"

#include <utility>

namespace shardrec::compute::cuda::host {
namespace {

static_assert(sizeof(SparseLength) == sizeof(shardrec_cuda_sparse_length));

}  // namespace

shardrec_cuda_bags on_device(const Bags& bags) {
  return {.ids = bags.ids,
          .bags = bags.bags,
          .samples = bags.samples,
          .dense_lengths = bags.dense_lengths,
          .sparse_lengths = static_cast<const shardrec_cuda_sparse_length*>(
              static_cast<const void*>(bags.sparse_lengths))};
}

BagIndex::BagIndex(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)),
      arguments_(stream_),
      lists_(make_memory(stream_)),
      zeros_(make_memory(stream_)) {}

std::span<const IndexedBags> BagIndex::run(std::span<const Bags* const> blocks) {
  list(blocks);
  if (const size_t bytes = zero_bytes(); bytes != 0) {
    std::byte* const zeros = zeros_.resize(bytes);
    require(table().fill(stream_->handle(), zeros, 0, bytes), "index bags on device ",
            stream_->device());
    enqueue(zeros);
  }
  return indexed_;
}

std::span<const IndexedBags> BagIndex::list(std::span<const Bags* const> blocks) {
  indexed_.clear();
  blocks_.clear();
  tiles_.clear();
  size_t numbers = 0;
  for (const Bags* bags : blocks) numbers += 2 * static_cast<size_t>(bags->bags) + 1;
  uint32_t* at = lists_.resize_as<uint32_t>(numbers).data();
  for (const Bags* bags : blocks) {
    uint32_t* const first_id = at;
    uint32_t* const sample = first_id + bags->bags + 1;
    at = sample + bags->bags;
    indexed_.push_back({.first_id = first_id, .sample = sample});
    blocks_.push_back({.bags = on_device(*bags), .first_id = first_id, .sample = sample});
    // A block without bags may have no list of lengths either.
    const bool sparse = bags->bags == 0 || bags->sparse_lengths != nullptr;
    tiles_.add(sparse ? bags->bags : bags->samples);
  }
  return indexed_;
}

void BagIndex::enqueue(std::byte* zeros) {
  if (tiles_.count() == 0) return;
  arguments_.begin(Arguments::bytes_of<shardrec_cuda_bag_index>(blocks_.size()) + tiles_.bytes());
  const shardrec_cuda_bag_indexing job{
      .blocks = arguments_.add(std::span<const shardrec_cuda_bag_index>(blocks_)),
      .tiles = tiles_.add_to(arguments_),
      .scan = scan_at(zeros)};
  arguments_.send();
  require(table().index_bags(stream_->handle(), &job), "index bags on device ", stream_->device());
}

}  // namespace shardrec::compute::cuda::host
