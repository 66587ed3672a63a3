// The family of operations for sums over the ranks: of statistics of rows that are cut by columns, and of
// gradients of rows that all ranks hold. The rows of such a table are dealt out in slots, one for each rank.
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

// When an operation is over, and the thread rule: backend.h. good[i] (is slot i what it says?) and rows[i] (that
// sums[i] has; its room is not read) are there when the call returns.
class SlotOperations {
 public:
  virtual ~SlotOperations() = default;
  SlotOperations(const SlotOperations&) = delete;
  SlotOperations& operator=(const SlotOperations&) = delete;

  virtual void find_rows(std::span<const RowSearch> searches) = 0;
  virtual void add_row_totals(std::span<const RowTotals> shards) = 0;
  virtual void pack_slots(std::span<const SlotPacking> slots) = 0;
  virtual void check_slots(std::span<const SlotRows> slots, std::span<uint8_t> good) = 0;
  virtual void count_slot_sums(std::span<const SlotSum> sums, std::span<int64_t> rows) = 0;
  virtual void add_slots(std::span<const SlotSum> sums) = 0;
  virtual void unpack_slots(std::span<const SlotUnpacking> tables) = 0;

 protected:
  SlotOperations() = default;
};

}  // namespace shardrec::compute
