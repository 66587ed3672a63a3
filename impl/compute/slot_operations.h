// Operations on the touched rows of tables that all ranks hold and whose gradients they add up
// (operations.h): the rows of a table are dealt out in slots, one for each rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shardrec::compute {

// How many of some ascending rows are below each bound: before[i] = those below bounds[i]. before is
// the host's, and there when the call returns.
struct RowSearch {
  const int64_t* rows = nullptr;
  int64_t count = 0;
  std::span<const int64_t> bounds;
  int64_t* before = nullptr;
};

// Slots begin at multiples of a word of bits.
constexpr int64_t kSlotGrain = 64;

// Touched rows of rows [begin, begin + rows) of a table, at most 2^32, as they travel: which (a bit per
// row of the slot, in words of 64, none behind its last row; or a list of count uint32, ascending,
// counted from begin), and a gradient for each.
struct SlotShape {
  int64_t begin = 0;
  int64_t rows = 0;
  int64_t count = 0;  // touched
  int64_t width = 0;  // floats of a gradient
  bool bits = false;
};
struct SlotRows : SlotShape {
  const std::byte* index = nullptr;
  const float* gradients = nullptr;  // [count, width]
};
struct SlotRoom : SlotShape {
  std::byte* index = nullptr;
  float* gradients = nullptr;
};

// Bytes of the index; a multiple of 8, the end of a list being zeros.
constexpr size_t slot_index_bytes(const SlotShape& slot) {
  const int64_t bytes =
      slot.bits ? (slot.rows + kSlotGrain - 1) / kSlotGrain * 8 : (slot.count + 1) / 2 * 8;
  return static_cast<size_t>(bytes);
}

// Writes the slot from rows of the table, ascending, all in it, and their gradients.
struct SlotPacking {
  const int64_t* rows = nullptr;     // [to.count]
  const float* gradients = nullptr;  // [to.count, width]
  SlotRoom to;
};

// The sums over the ranks of the gradients of one slot, for each row that any rank has touched: a
// pairwise tree over the rank number, from which a rank that has not touched the row is left out.
struct SlotSum {
  std::span<const SlotRows> addends;  // by rank
  SlotRoom to;
};

// All rows of a table that any slot has, ascending, and the address of the gradient of each.
struct SlotUnpacking {
  std::span<const SlotRows> slots;  // ascending
  int64_t* rows = nullptr;
  const float** gradients = nullptr;
};

// Rows that have one occurrence each, as a RowUpdate says it: run = 0, 1, 2, ..., rows; bags = 0, 1, 2,
// ...; blocks = 0, 0, 0, ...
struct SingleOccurrences {
  int64_t rows = 0;
  int64_t* run = nullptr;
  uint32_t* bags = nullptr;
  uint32_t* blocks = nullptr;
};

// Sums over whole rows: out = [rows, values], each the sum of the addends that have the row, from 0,
// in their order. Row r of an addend, of [first, last), has its values at sums + (r - first) * stride.
struct RowAddend {
  const float* sums = nullptr;
  size_t stride = 0;  // floats
  int64_t first = 0;
  int64_t last = 0;
};
struct RowTotals {
  int64_t rows = 0;
  int64_t values = 0;
  std::span<const RowAddend> addends;
  float* out = nullptr;
};

}  // namespace shardrec::compute
