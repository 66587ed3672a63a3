// Operations that send the ids of a batch to the ranks that own their rows, on the source, and take
// them in, on the owner (operations.h). Ids travel in blocks: those of one feature that fall into
// one range of rows of its table. A block has sections, each at a multiple of 8 bytes of a message:
// bag lengths, dense or sparse (bags.h), ids less the first row of the range, and weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "compute/bags.h"
#include "compute/batch_operations.h"
#include "compute/kernels.h"
#include "shardrec/options.h"

namespace shardrec::compute {

// A block that the ids of an interval of rows go to.
struct BlockTarget {
  size_t block = 0;
  int64_t row = 0;  // first one of the block's range: ids are written less it
};

// Where the ids of a table go: interval i is rows [cuts[i], cuts[i + 1]), and its ids go to
// targets[first_target[i] .. first_target[i + 1]) of their feature. Everything is the host's.
struct RowIntervals {
  std::span<const int64_t> cuts;          // [intervals + 1]
  std::span<const int32_t> first_target;  // [intervals + 1]
  int64_t even = 0;                       // length of all intervals but the last; 0: uneven
  uint64_t reciprocal = 0;                // upper half of row * reciprocal = row / even; 0: divide
  // Has every target one interval, and are there at most kMostStreams of them?
  bool streams = false;

  size_t count() const { return cuts.size() - 1; }
};
inline constexpr size_t kMostStreams = 64;

// The ids of one feature of the batch, and where they go.
struct RoutedIds {
  Integers ids;  // of the whole batch; those of the feature are [first, first + count)
  int64_t first = 0;
  int64_t count = 0;
  const float* weights = nullptr;     // of the whole batch; null: all 1
  const uint32_t* lengths = nullptr;  // [bags]
  int64_t bags = 0;
  int64_t rows = 0;  // of the table
  shardrec_out_of_range policy = SHARDREC_OUT_OF_RANGE_ERROR;
  bool sequence = false;             // its items are ids, not bags
  bool writes_64 = false;            // ids travel as int64
  std::span<const uint32_t> blocks;  // all that it has, once each; the host's, as targets
  // Null: every block holds all ids of the feature, as they are.
  const RowIntervals* intervals = nullptr;
  std::span<const BlockTarget> targets;  // by interval
  // Written: bag lengths without the ids that are dropped, [bags], by count_ids; the interval of
  // each id, kDroppedId where it goes nowhere, [count], by write_ids. Null: not wanted.
  uint32_t* kept_lengths = nullptr;
  int32_t* interval_of = nullptr;

  int64_t chunks() const { return chunks_of(sequence ? count : bags); }
};

// What the checks of the ids of a feature found.
struct CheckedIds {
  WrongInteger wrong;        // the first id that its policy refuses
  int64_t out_of_range = 0;  // ids that were dropped or clamped
};
struct BlockCount {
  int64_t ids = 0;
  int64_t bags = 0;  // not empty
};

// Where a block is written to. chunk_rows and chunk_ids are as those of SentBags.
struct BlockSections {
  uint32_t* dense_lengths = nullptr;  // [bags of the feature], or
  SparseLength* sparse_lengths = nullptr;
  void* ids = nullptr;
  float* weights = nullptr;  // null: not wanted
  uint32_t* chunk_rows = nullptr;
  uint32_t* chunk_ids = nullptr;
};

// Bytes of the section of ids: every id; or, unique not 0, the different ones, then a code for each
// id that says which of them it is.
constexpr size_t id_section_bytes(uint64_t ids, uint64_t unique, bool is_64) {
  const auto aligned = [](size_t bytes) { return (bytes + 7) / 8 * 8; };
  const size_t id = is_64 ? sizeof(int64_t) : sizeof(int32_t);
  if (unique == 0) return aligned(ids * id);
  return aligned(unique * id) + aligned(ids * code_bytes(unique));
}
constexpr size_t code_offset(uint64_t unique, bool is_64) {
  return (unique * (is_64 ? sizeof(int64_t) : sizeof(int32_t)) + 7) / 8 * 8;
}

// A written block whose different ids shall travel once where that takes fewer bytes.
struct PlainBlock {
  size_t lengths_bytes = 0;
  int64_t ids = 0;
  bool is_64 = false;
  size_t weights_bytes = 0;
};
// Blocks of one message, one behind another. They are rewritten in place, each to where the one
// before it ends now. unique, by block: the number of different ids; 0: all of its ids stay.
struct DeduplicatedBlocks {
  std::byte* data = nullptr;
  std::span<const PlainBlock> blocks;
  std::span<int64_t> unique;
};

// What is wrong with the bag lengths of a received block: sparse ones do not ascend by sample, or
// one is 0 or beyond the samples; or there are not as many ids or bags as the block says.
enum class BagDefect : uint8_t { kNone, kOrder, kSum };

// Ids that travelled as codes: out[i] = unique_ids[codes[i]]. A code is wrong where it is not below
// unique.
struct CodedIds {
  const std::byte* codes = nullptr;  // code_bytes(unique) each
  int64_t count = 0;
  Ids unique_ids;
  int64_t unique = 0;
  void* out = nullptr;  // [count], as unique_ids
};

}  // namespace shardrec::compute
