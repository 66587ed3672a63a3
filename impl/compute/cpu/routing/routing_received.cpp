#include "compute/cpu/routing/routing_received.h"

#include "compute/cpu/tasks/shares.h"

namespace shardrec::compute::cpu {
namespace {

BagDefect check(const Bags& block) {
  uint64_t ids = 0;
  int64_t bags = 0;
  if (block.sparse_lengths != nullptr) {
    int64_t before = -1;
    for (; bags < block.bags; ++bags) {
      const SparseLength& entry = block.sparse_lengths[bags];
      if (entry.sample >= block.samples || entry.sample <= before || entry.count == 0) {
        return BagDefect::kOrder;
      }
      before = entry.sample;
      ids += entry.count;
    }
  } else {
    for (int64_t s = 0; s < block.samples; ++s) {
      ids += block.dense_lengths[s];
      bags += block.dense_lengths[s] != 0;
    }
  }
  const bool adds_up = ids == static_cast<uint64_t>(block.ids) && bags == block.bags;
  return adds_up ? BagDefect::kNone : BagDefect::kSum;
}

template <class Code, class Id>
WrongInteger expand(const CodedIds& block, const Id* unique) {
  const auto* codes = static_cast<const Code*>(static_cast<const void*>(block.codes));
  auto* ids = static_cast<Id*>(block.out);
  for (int64_t i = 0; i < block.count; ++i) {
    if (codes[i] >= block.unique) return {.position = i, .value = int64_t{codes[i]}};
    ids[i] = unique[codes[i]];
  }
  return {};
}

template <class Id>
WrongInteger expand_to(const CodedIds& block, const Id* unique) {
  switch (code_bytes(static_cast<uint64_t>(block.unique))) {
    case 1:
      return expand<uint8_t>(block, unique);
    case 2:
      return expand<uint16_t>(block, unique);
    default:
      return expand<uint32_t>(block, unique);
  }
}

}  // namespace

void check_bags(std::span<const Bags> blocks, std::span<BagDefect> defects,
                const Context& context) {
  for_each_task(blocks.size(), context, [&](size_t b) { defects[b] = check(blocks[b]); });
}

void expand_ids(std::span<const CodedIds> blocks, std::span<WrongInteger> wrong,
                const Context& context) {
  for_each_task(blocks.size(), context, [&](size_t b) {
    const Ids& unique = blocks[b].unique_ids;
    wrong[b] = unique.is_64 ? expand_to(blocks[b], static_cast<const int64_t*>(unique.data))
                            : expand_to(blocks[b], static_cast<const int32_t*>(unique.data));
  });
}

}  // namespace shardrec::compute::cpu
