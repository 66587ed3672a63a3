#include "compute/cuda/host/routing/received_blocks.h"

#include <utility>

#include "compute/cuda/host/bag_index.h"

namespace shardrec::compute::cuda::host {
namespace {

BagDefect defect_of(const Bags& block, const shardrec_cuda_bag_totals& totals) {
  if (totals.unordered != 0) return BagDefect::kOrder;
  const bool sparse = block.sparse_lengths != nullptr;
  const bool adds_up = totals.ids == static_cast<uint64_t>(block.ids) &&
                       (sparse || totals.bags == static_cast<uint64_t>(block.bags));
  return adds_up ? BagDefect::kNone : BagDefect::kSum;
}

size_t code_bytes_of(const CodedIds& block) {
  return code_bytes(static_cast<uint64_t>(block.unique));
}

}  // namespace

ReceivedBlocks::ReceivedBlocks(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)), arguments_(stream_), results_(stream_), wrong_values_(stream_) {}

void ReceivedBlocks::check_bags(std::span<const Bags> blocks, std::span<BagDefect> defects) {
  bags_.clear();
  tiles_.clear();
  for (const Bags& block : blocks) {
    bags_.push_back(on_device(block));
    tiles_.add(block.sparse_lengths != nullptr ? block.bags : block.samples);
  }
  const std::span<const shardrec_cuda_bags> list(bags_);
  arguments_.begin(Arguments::bytes_of<shardrec_cuda_bags>(list.size()) + tiles_.bytes());
  const shardrec_cuda_bag_check job{
      .blocks = arguments_.add(list),
      .tiles = tiles_.add_to(arguments_),
      .totals = results_.begin<shardrec_cuda_bag_totals>(blocks.size(), 0)};
  arguments_.send();
  require(table().check_bags(stream_->handle(), &job), "check the bags of blocks on device ",
          stream_->device());
  const auto totals = results_.fetch<shardrec_cuda_bag_totals>();
  for (size_t b = 0; b < blocks.size(); ++b) defects[b] = defect_of(blocks[b], totals[b]);
}

void ReceivedBlocks::expand_ids(std::span<const CodedIds> blocks, std::span<WrongInteger> wrong) {
  coded_.clear();
  tiles_.clear();
  for (const CodedIds& block : blocks) {
    coded_.push_back({.codes = block.codes,
                      .code_bytes = static_cast<int32_t>(code_bytes_of(block)),
                      .ids_are_64 = block.unique_ids.is_64,
                      .count = block.count,
                      .unique_ids = block.unique_ids.data,
                      .unique = block.unique,
                      .out = block.out});
    tiles_.add(block.count);
  }
  const std::span<const shardrec_cuda_coded_ids> list(coded_);
  arguments_.begin(Arguments::bytes_of<shardrec_cuda_coded_ids>(list.size()) + tiles_.bytes());
  const shardrec_cuda_id_expansion job{.blocks = arguments_.add(list),
                                       .tiles = tiles_.add_to(arguments_),
                                       .wrong = results_.begin<uint64_t>(blocks.size(), 0)};
  arguments_.send();
  require(table().expand_ids(stream_->handle(), &job), "expand the codes of ids on device ",
          stream_->device());
  const auto found = results_.fetch<uint64_t>();
  for (size_t b = 0; b < blocks.size(); ++b) {
    wrong[b] = {};
    if (found[b] == 0) continue;
    wrong[b].position = first_wrong(found[b]);
    const size_t bytes = code_bytes_of(blocks[b]);
    wrong[b].value = wrong_values_.of_code(
        blocks[b].codes + static_cast<size_t>(wrong[b].position) * bytes, bytes);
  }
}

}  // namespace shardrec::compute::cuda::host
