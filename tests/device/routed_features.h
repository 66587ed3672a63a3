// Features of a batch, with tables cut in every way, and room for what is written of them: for tests of
// their routing on a device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "compute/jobs.h"
#include "compute/routing_operations.h"

namespace shardrec::test {

using compute::BlockCount;
using compute::BlockSections;
using compute::BlockTarget;
using compute::kChunk;
using compute::Random;
using compute::RoutedIds;
using compute::RowIntervals;
using compute::SparseLength;
using compute::uniform;

enum class TableCut : uint8_t { kWhole, kEven, kDivided, kUneven, kTangled, kMany };
inline constexpr TableCut kTableCuts[] = {TableCut::kWhole,  TableCut::kEven,    TableCut::kDivided,
                                          TableCut::kUneven, TableCut::kTangled, TableCut::kMany};

struct RoutedShape {
  TableCut cut = TableCut::kWhole;
  int64_t bags = 100;
  int64_t longest = 4;
  int64_t rows = 100;
  bool reads_64 = false;
  bool writes_64 = false;
  bool sequence = false;
  bool weighted = false;
  bool keeps_intervals = false;
  int form = 0;  // of lengths: 0 the smaller one, 1 dense, 2 sparse
  shardrec_out_of_range policy = SHARDREC_OUT_OF_RANGE_ERROR;
  int wrong_ids = 0;  // of 16
};

inline RoutedShape random_shape(Random& random, TableCut cut) {
  constexpr int64_t kBags[] = {0, 1, 31, 63, 64, 65, 200, kChunk - 1, kChunk, kChunk + 1, 1100};
  constexpr int64_t kLongest[] = {0, 1, 3, 40, 150};
  RoutedShape shape{.cut = cut,
                    .bags = kBags[uniform(random, 0, 10)],
                    .longest = kLongest[uniform(random, 0, 4)],
                    .reads_64 = uniform(random, 0, 1) == 1,
                    .writes_64 = uniform(random, 0, 2) == 0,
                    .sequence = uniform(random, 0, 2) == 0,
                    .weighted = uniform(random, 0, 1) == 1,
                    .keeps_intervals = uniform(random, 0, 1) == 1,
                    .form = static_cast<int>(uniform(random, 0, 2))};
  if (shape.longest > 3) shape.bags = std::min<int64_t>(shape.bags, 200);
  if (shape.writes_64 && shape.reads_64) shape.rows = int64_t{3} << 31;
  shape.policy = static_cast<shardrec_out_of_range>(uniform(random, 0, 2));
  if (cut == TableCut::kWhole) {
    // What goes to its blocks whole drops nothing and has one interval.
    shape.keeps_intervals = false;
    if (shape.policy == SHARDREC_OUT_OF_RANGE_DROP) shape.policy = SHARDREC_OUT_OF_RANGE_CLAMP;
  }
  if (shape.policy != SHARDREC_OUT_OF_RANGE_ERROR) {
    shape.wrong_ids = static_cast<int>(uniform(random, 0, 1) * uniform(random, 1, 8));
  }
  return shape;
}

// How the rows of a table are cut, and which blocks the parts go to: numbers from 0 on.
struct TableWays {
  std::vector<int64_t> cuts;
  std::vector<int32_t> first_target{0};
  std::vector<BlockTarget> targets;
  int64_t even = 0;
  uint64_t reciprocal = 0;
  bool streams = false;

  void add(int64_t end, std::initializer_list<size_t> blocks) {
    for (const size_t block : blocks) targets.push_back({.block = block});
    first_target.push_back(static_cast<int32_t>(targets.size()));
    cuts.push_back(end);
  }
  void add_even(size_t intervals, int64_t rows, size_t copies) {
    even = (rows + static_cast<int64_t>(intervals) - 1) / static_cast<int64_t>(intervals);
    for (size_t i = 0; i < intervals; ++i) {
      for (size_t c = 0; c < copies; ++c) targets.push_back({.block = i + c * intervals});
      first_target.push_back(static_cast<int32_t>(targets.size()));
      cuts.push_back(std::min(rows, static_cast<int64_t>(i + 1) * even));
    }
    streams = intervals <= compute::kMostStreams;
  }
};

inline TableWays ways_of(const RoutedShape& shape) {
  TableWays ways;
  ways.cuts.push_back(0);
  switch (shape.cut) {
    case TableCut::kWhole:
      ways.add(shape.rows, {1, 0});
      break;
    case TableCut::kEven:
      ways.add_even(3, shape.rows, 2);
      // The upper half of row * reciprocal is row / even for rows of 32 bits.
      if (shape.rows < (int64_t{1} << 31)) {
        ways.reciprocal = UINT64_MAX / static_cast<uint64_t>(ways.even) + 1;
      }
      break;
    case TableCut::kDivided:
      ways.add_even(40, shape.rows, 1);
      break;
    case TableCut::kUneven:
      // Block 1 has two intervals, block 2 all of them, the last interval none but it.
      ways.add(3, {0, 2});
      ways.add(40, {1, 2});
      ways.add(41, {1, 2});
      ways.add(shape.rows, {2});
      break;
    case TableCut::kTangled:
      // Each two of the blocks 0 to 2 meet somewhere, though no interval has three.
      ways.add(10, {0, 1});
      ways.add(20, {1, 2});
      ways.add(30, {2, 0});
      ways.add(shape.rows, {0});
      break;
    case TableCut::kMany:
      // More than there are places for in shared memory; not streams.
      for (size_t i = 0; i < 75; ++i) ways.add(static_cast<int64_t>(i) + 1, {i, i + 75});
      ways.add(shape.rows, {150, 3, 80});
      break;
  }
  // The first row of a block is that of its first interval.
  for (size_t i = ways.first_target.size() - 1; i-- > 0;) {
    for (BlockTarget& target : ways.targets) {
      const auto from = ways.targets.begin() + ways.first_target[i];
      const auto to = ways.targets.begin() + ways.first_target[i + 1];
      const bool here = std::any_of(
          from, to, [&](const BlockTarget& other) { return other.block == target.block; });
      if (here) target.row = ways.cuts[i];
    }
  }
  return ways;
}

// A feature, and what is written of it. first_block: of its blocks in the call.
class RoutedFeature {
 public:
  RoutedFeature(Random& random, const RoutedShape& shape, size_t first_block)
      : shape_(shape), ways_(ways_of(shape)), first_(uniform(random, 0, 7)) {
    for (BlockTarget& target : ways_.targets) {
      target.block += first_block;
      const auto block = static_cast<uint32_t>(target.block);
      if (std::ranges::find(blocks_, block) == blocks_.end()) blocks_.push_back(block);
    }
    wide_.assign(static_cast<size_t>(first_), -77);
    const int64_t often = uniform(random, 0, 1) == 0 ? 1 : 6;
    for (int64_t bag = 0; bag < shape.bags; ++bag) {
      const bool empty = uniform(random, 1, often) != 1;
      lengths_.push_back(empty ? 0 : static_cast<uint32_t>(uniform(random, 0, shape.longest)));
      for (uint32_t i = 0; i < lengths_.back(); ++i) add_id(random);
    }
    count_ = std::ssize(wide_) - first_;
    for (size_t i = 0; i < wide_.size(); ++i) weights_.push_back(static_cast<float>(i) / 8);
    narrow_.assign(wide_.begin(), wide_.end());
    kept_.assign(lengths_.size() + 1, 99);
    interval_of_.assign(static_cast<size_t>(count_) + 1, 99);
    if (shape.cut != TableCut::kWhole) {
      intervals_ = {.cuts = ways_.cuts,
                    .first_target = ways_.first_target,
                    .even = ways_.even,
                    .reciprocal = ways_.reciprocal,
                    .streams = ways_.streams};
    }
  }
  RoutedFeature(const RoutedFeature&) = delete;

  const RoutedShape& shape() const { return shape_; }
  std::span<const uint32_t> blocks() const { return blocks_; }
  size_t blocks_in_call() const {
    return *std::ranges::max_element(blocks_) - *std::ranges::min_element(blocks_) + 1;
  }
  int64_t count() const { return count_; }
  std::span<const std::byte> ids() const {
    return shape_.reads_64 ? std::as_bytes(std::span(wide_)) : std::as_bytes(std::span(narrow_));
  }
  const std::vector<float>& weights() const { return weights_; }
  const std::vector<uint32_t>& lengths() const { return lengths_; }
  std::vector<uint32_t>& kept() { return kept_; }
  std::vector<int32_t>& interval_of() { return interval_of_; }
  void spoil(int64_t i, int64_t id) {
    wide_[static_cast<size_t>(first_ + i)] = id;
    narrow_[static_cast<size_t>(first_ + i)] = static_cast<int32_t>(id);
  }

  // With these addresses.
  RoutedIds view(const void* ids, const void* weights, const void* lengths, void* kept,
                 void* interval_of) const {
    RoutedIds routed{.ids = {ids, shape_.reads_64},
                     .first = first_,
                     .count = count_,
                     .weights = shape_.weighted ? static_cast<const float*>(weights) : nullptr,
                     .lengths = static_cast<const uint32_t*>(lengths),
                     .bags = shape_.bags,
                     .rows = shape_.rows,
                     .policy = shape_.policy,
                     .sequence = shape_.sequence,
                     .writes_64 = shape_.writes_64,
                     .blocks = blocks_,
                     .intervals = shape_.cut == TableCut::kWhole ? nullptr : &intervals_,
                     .targets = ways_.targets};
    if (shape_.policy == SHARDREC_OUT_OF_RANGE_DROP) {
      routed.kept_lengths = static_cast<uint32_t*>(kept);
    }
    if (shape_.keeps_intervals) routed.interval_of = static_cast<int32_t*>(interval_of);
    return routed;
  }
  RoutedIds on_host() {
    return view(ids().data(), weights_.data(), lengths_.data(), kept_.data(), interval_of_.data());
  }

 private:
  void add_id(Random& random) {
    const int64_t most = shape_.reads_64 ? shape_.rows - 1 : std::min<int64_t>(shape_.rows - 1, 99);
    // Small ones too, where uneven cuts are.
    int64_t id = uniform(random, 0, uniform(random, 0, 1) == 0 ? most : 99);
    if (uniform(random, 1, 16) <= shape_.wrong_ids) {
      id = uniform(random, 0, 1) == 0 || !shape_.reads_64 ? -1 - id : shape_.rows + id;
    }
    wide_.push_back(id);
  }

  RoutedShape shape_;
  TableWays ways_;
  int64_t first_;
  int64_t count_ = 0;
  std::vector<uint32_t> blocks_;
  RowIntervals intervals_;
  std::vector<int64_t> wide_;
  std::vector<int32_t> narrow_;
  std::vector<float> weights_;
  std::vector<uint32_t> lengths_;
  std::vector<uint32_t> kept_;
  std::vector<int32_t> interval_of_;
};

// The room of a block's sections, one behind another, with some bytes behind each.
struct BlockRoom {
  BlockRoom(const RoutedShape& shape, const BlockCount& count, int64_t chunks) {
    is_sparse = shape.form == 0 ? 2 * count.bags < shape.bags : shape.form == 2;
    has_weights = shape.weighted && !shape.sequence;
    const auto take = [&](int64_t numbers, size_t bytes) {
      const size_t at = size;
      size += (static_cast<size_t>(numbers) * bytes + 15) / 8 * 8;
      return at;
    };
    lengths = is_sparse ? take(count.bags, sizeof(SparseLength)) : take(shape.bags, 4);
    ids = take(count.ids, shape.writes_64 ? 8 : 4);
    weights = take(has_weights ? count.ids : 0, sizeof(float));
    chunk_rows = take(chunks + 1, sizeof(uint32_t));
    chunk_ids = take(chunks + 1, sizeof(uint32_t));
  }

  BlockSections at(std::byte* base) const {
    const auto in = [&](size_t offset) { return static_cast<void*>(base + offset); };
    return {.dense_lengths = is_sparse ? nullptr : static_cast<uint32_t*>(in(lengths)),
            .sparse_lengths = is_sparse ? static_cast<SparseLength*>(in(lengths)) : nullptr,
            .ids = in(ids),
            .weights = has_weights ? static_cast<float*>(in(weights)) : nullptr,
            .chunk_rows = static_cast<uint32_t*>(in(chunk_rows)),
            .chunk_ids = static_cast<uint32_t*>(in(chunk_ids))};
  }

  bool is_sparse = false;
  bool has_weights = false;
  size_t lengths = 0, ids = 0, weights = 0, chunk_rows = 0, chunk_ids = 0;
  size_t size = 0;
};

}  // namespace shardrec::test
