// Touched rows of a slot, a range of a replicated table's rows, as they travel: how many, which (a
// list, or a bit per row), then a gradient for each. Every section starts at a multiple of 8 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/communicator.h"

namespace shardrec::embedding {

// Rows [begin, end) of a table. At most 2^32 (plan::fits_slots).
struct Slot {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t rows() const { return end - begin; }
};

// How the touched rows of a table travel.
struct SlotForm {
  bool bits = false;  // else a list
  int64_t width = 0;  // floats of a gradient
};

// Slots start at multiples of a word of bits.
constexpr int64_t kSlotGrain = 64;

// Bytes of so many touched rows, with their gradients.
size_t slot_bytes(const SlotForm& form, const Slot& slot, int64_t count);

// Writes how many rows travel and which (of the table, ascending, in the slot); returns where their
// gradients go.
std::byte* write_slot_rows(const SlotForm& form, const Slot& slot, std::span<const int64_t> rows,
                           std::byte* to);

// Touched rows in a message, checked: as many as there are said to be, ascending, in the slot.
struct SlotRows {
  int64_t count = 0;
  const uint64_t* bits = nullptr;
  const uint32_t* list = nullptr;  // relative to the slot
  const float* gradients = nullptr;
};

// Reads what the rank's message has next and moves on. Throws CORRUPT_DATA.
SlotRows read_slot_rows(const SlotForm& form, const Slot& slot, comm::ConstBytes& rest, int rank);
[[noreturn]] void throw_malformed_slot(int rank);

// Walks the touched rows of a message, ascending.
class SlotCursor {
 public:
  static constexpr int64_t kEnd = INT64_MAX;

  SlotCursor(const SlotRows& rows, const Slot& slot, int64_t width);

  int64_t row() const { return row_; }  // of the table; kEnd: there is none left
  const float* gradient() const { return gradient_; }
  void next() {
    gradient_ += width_;
    ++taken_;
    find();
  }

 private:
  void find();

  SlotRows rows_;
  int64_t begin_;
  int64_t width_;
  int64_t taken_ = 0;
  int64_t row_ = kEnd;
  const float* gradient_;
  uint64_t word_ = 0;  // bits that are left of word number at_
  size_t at_ = 0;
};

}  // namespace shardrec::embedding
