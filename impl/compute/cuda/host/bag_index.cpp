#include "compute/cuda/host/bag_index.h"

#include <utility>

#include "core/error.h"

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
      sums_(make_memory(stream_)),
      room_(make_memory(stream_)) {}

std::span<const IndexedBags> BagIndex::run(std::span<const Bags* const> blocks) {
  indexed_.clear();
  blocks_.clear();
  first_length_.assign(1, 0);
  size_t numbers = 0;
  for (const Bags* bags : blocks) numbers += 2 * static_cast<size_t>(bags->bags) + 1;
  uint32_t* list = lists_.resize_as<uint32_t>(numbers).data();
  for (const Bags* bags : blocks) {
    uint32_t* const first_id = list;
    uint32_t* const sample = first_id + bags->bags + 1;
    list = sample + bags->bags;
    indexed_.push_back({.first_id = first_id, .sample = sample});
    blocks_.push_back({.bags = on_device(*bags), .first_id = first_id, .sample = sample});
    // A block without bags may have no list of lengths either.
    const bool sparse = bags->bags == 0 || bags->sparse_lengths != nullptr;
    first_length_.push_back(first_length_.back() + (sparse ? bags->bags : bags->samples));
  }
  if (first_length_.back() == 0) return indexed_;
  arguments_.begin(Arguments::bytes_of<shardrec_cuda_bag_index>(blocks_.size()) +
                   Arguments::bytes_of<int64_t>(first_length_.size()));
  shardrec_cuda_bag_indexing job{
      .blocks = arguments_.add(std::span<const shardrec_cuda_bag_index>(blocks_)),
      .first_length = arguments_.add(std::span<const int64_t>(first_length_)),
      .count = std::ssize(blocks_),
      .lengths = first_length_.back(),
      .sums = sums_.resize_as<uint64_t>(static_cast<size_t>(first_length_.back()) + 1).data()};
  arguments_.send();
  const auto index = [&] {
    require(table().index_bags(stream_->handle(), &job),
            core::sentence("index bags on device ", stream_->device()));
  };
  index();  // how much room it takes
  job.room = room_.resize(job.room_bytes);
  index();
  return indexed_;
}

}  // namespace shardrec::compute::cuda::host
