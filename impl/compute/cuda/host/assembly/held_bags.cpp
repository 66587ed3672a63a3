#include "compute/cuda/host/assembly/held_bags.h"

#include <utility>

namespace shardrec::compute::cuda::host {
namespace {

constexpr int64_t kChunkWords = kChunk / 64;

}  // namespace

HeldBags::HeldBags(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)), arguments_(stream_), room_(make_memory(stream_)) {}

void HeldBags::clear() {
  blocks_.clear();
  lists_.clear();
  presence_.clear();
}

void HeldBags::add(std::span<const SentRows> blocks, int64_t bags, const uint32_t* chunk_before) {
  add_list(blocks, {.bags = bags, .chunk_before = chunk_before});
}

void HeldBags::add_count(const NodeSumCount& count) {
  add_list(count.addends, {.bags = count.bags, .chunk_sums = count.chunk_sums});
}

void HeldBags::add_list(std::span<const SentRows> blocks, shardrec_cuda_held_bags list) {
  for (const SentRows& block : blocks) {
    blocks_.push_back({.dense_lengths = block.bags->dense_lengths,
                       .sparse_lengths = static_cast<const shardrec_cuda_sparse_length*>(
                           static_cast<const void*>(block.bags->sparse_lengths)),
                       .chunk_rows = block.bags->chunk_rows});
  }
  list.count = std::ssize(blocks);
  lists_.push_back(list);
}

void HeldBags::run() {
  size_t words = 0;
  for (const shardrec_cuda_held_bags& list : lists_) {
    if (list.chunk_before != nullptr) {
      words += static_cast<size_t>(chunks_of(list.bags) * kChunkWords);
    }
  }
  std::byte* const room = room_.resize(words * (sizeof(uint64_t) + sizeof(uint32_t)));
  auto* bits = static_cast<uint64_t*>(static_cast<void*>(room));
  auto* before = static_cast<uint32_t*>(static_cast<void*>(room + words * sizeof(uint64_t)));
  arguments_.begin(Arguments::bytes_of<shardrec_cuda_sent_bags>(blocks_.size()) +
                   Arguments::bytes_of<shardrec_cuda_held_bags>(lists_.size()) * 2 +
                   Arguments::bytes_of<int64_t>(lists_.size() + 1));
  const shardrec_cuda_sent_bags* block =
      arguments_.add(std::span<const shardrec_cuda_sent_bags>(blocks_));
  launch_.clear();
  for (shardrec_cuda_held_bags& list : lists_) {
    list.blocks = block;
    block += list.count;
    if (list.chunk_before != nullptr) {
      list.bits = bits;
      list.before = before;
      bits += chunks_of(list.bags) * kChunkWords;
      before += chunks_of(list.bags) * kChunkWords;
    }
    presence_.push_back({.bits = list.bits, .before = list.before});
    launch_.add(list, chunks_of(list.bags));
  }
  lists_there_ = arguments_.add(std::span<const shardrec_cuda_held_bags>(lists_));
  launch_.send(arguments_);
  arguments_.send();
  require(table().index_held_bags(stream_->handle(), launch_.jobs_there(),
                                  launch_.first_unit_there(), launch_.count(), launch_.units()),
          "find the bags of blocks on device ", stream_->device());
}

void HeldBags::add_up(int64_t* rows) {
  require(table().add_chunk_sums(stream_->handle(), lists_there_,
                                 static_cast<int32_t>(lists_.size()), rows),
          "count the bags of nodes on device ", stream_->device());
}

}  // namespace shardrec::compute::cuda::host
