#include "compute/cpu/slots/slots.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "compute/cpu/tasks/shares.h"

namespace shardrec::compute::cpu {
namespace {

const uint64_t* words_of(const SlotRows& slot) {
  return static_cast<const uint64_t*>(static_cast<const void*>(slot.index));
}
const uint32_t* list_of(const SlotRows& slot) {
  return static_cast<const uint32_t*>(static_cast<const void*>(slot.index));
}

// Writes the index of a slot row by row, ascending.
class IndexWriter {
 public:
  explicit IndexWriter(const SlotRoom& slot) : slot_(slot) {
    if (const size_t bytes = slot_index_bytes(slot); bytes != 0) std::memset(slot.index, 0, bytes);
  }
  void add(int64_t row) {
    const int64_t place = row - slot_.begin;
    if (slot_.bits) {
      static_cast<uint64_t*>(static_cast<void*>(slot_.index))[place / kSlotGrain] |=
          uint64_t{1} << (place % kSlotGrain);
    } else {
      static_cast<uint32_t*>(static_cast<void*>(slot_.index))[written_++] =
          static_cast<uint32_t>(place);
    }
  }

 private:
  const SlotRoom& slot_;
  int64_t written_ = 0;
};

// Walks the touched rows of a slot, ascending.
class SlotCursor {
 public:
  static constexpr int64_t kEnd = INT64_MAX;

  explicit SlotCursor(const SlotRows& slot) : slot_(&slot), gradient_(slot.gradients) {
    if (slot.bits && slot.count != 0) word_ = words_of(slot)[0];
    find();
  }

  int64_t row() const { return row_; }  // of the table; kEnd: there is none left
  const float* gradient() const { return gradient_; }
  void next() {
    gradient_ += slot_->width;
    ++taken_;
    find();
  }

 private:
  void find() {
    if (taken_ == slot_->count) {
      row_ = kEnd;
    } else if (!slot_->bits) {
      row_ = slot_->begin + list_of(*slot_)[taken_];
    } else {
      while (word_ == 0) word_ = words_of(*slot_)[++at_];
      row_ = slot_->begin + static_cast<int64_t>(at_) * kSlotGrain + std::countr_zero(word_);
      word_ &= word_ - 1;
    }
  }

  const SlotRows* slot_;
  int64_t taken_ = 0;
  int64_t row_ = kEnd;
  const float* gradient_;
  uint64_t word_ = 0;  // bits that are left of word number at_
  size_t at_ = 0;
};

bool are_the_bits(const SlotRows& slot) {
  const uint64_t* words = words_of(slot);
  const size_t count = slot_index_bytes(slot) / sizeof(uint64_t);
  int64_t set = 0;
  for (size_t w = 0; w < count; ++w) set += std::popcount(words[w]);
  const int64_t last = slot.rows % kSlotGrain;
  return set == slot.count && (last == 0 || words[count - 1] >> last == 0);
}

bool is_the_list(const SlotRows& slot) {
  const uint32_t* list = list_of(slot);
  for (int64_t i = 1; i < slot.count; ++i) {
    if (list[i - 1] >= list[i]) return false;
  }
  return slot.count == 0 || int64_t{list[slot.count - 1]} < slot.rows;
}

void pack(const SlotPacking& slot) {
  IndexWriter index(slot.to);
  for (int64_t i = 0; i < slot.to.count; ++i) index.add(slot.rows[i]);
  const auto floats = static_cast<size_t>(slot.to.count * slot.to.width);
  if (floats != 0) std::memcpy(slot.to.gradients, slot.gradients, floats * sizeof(float));
}

// One sum at a time, in scratch: a cursor and an addend for each rank, and partial sums.
class Addition {
 public:
  static size_t bytes(const SlotSum& sum) {
    return sum.addends.size() * (sizeof(SlotCursor) + sizeof(const float*) +
                                 static_cast<size_t>(sum.to.width) * sizeof(float));
  }
  Addition(const SlotSum& sum, std::byte* scratch) : ranks_(sum.addends.size()) {
    cursors_ = static_cast<SlotCursor*>(static_cast<void*>(scratch));
    scratch += ranks_ * sizeof(SlotCursor);
    addends_ = static_cast<const float**>(static_cast<void*>(scratch));
    scratch += ranks_ * sizeof(const float*);
    partial_ = static_cast<float*>(static_cast<void*>(scratch));
    for (size_t r = 0; r < ranks_; ++r) std::construct_at(cursors_ + r, sum.addends[r]);
  }

  int64_t lowest_row() const {
    int64_t lowest = SlotCursor::kEnd;
    for (size_t r = 0; r < ranks_; ++r) lowest = std::min(lowest, cursors_[r].row());
    return lowest;
  }
  void skip(int64_t row) {
    for (size_t r = 0; r < ranks_; ++r) {
      if (cursors_[r].row() == row) cursors_[r].next();
    }
  }
  // The sum of a row, which the cursors leave behind.
  const float* sum(int64_t row, int64_t width, const Kernels& kernels) {
    for (size_t r = 0; r < ranks_; ++r) {
      const bool has = cursors_[r].row() == row;
      addends_[r] = has ? cursors_[r].gradient() : nullptr;
      if (has) cursors_[r].next();
    }
    // The sum of ranks [r, r + 2 * step) comes to stand at r.
    for (size_t step = 1; step < ranks_; step *= 2) {
      for (size_t r = 0; r + step < ranks_; r += 2 * step) add(r, r + step, width, kernels);
    }
    return addends_[0];
  }

 private:
  void add(size_t left, size_t right, int64_t width, const Kernels& kernels) {
    if (addends_[right] == nullptr) return;
    if (addends_[left] == nullptr) {
      addends_[left] = addends_[right];
      return;
    }
    float* const sum = partial_ + left * static_cast<size_t>(width);
    if (addends_[left] != sum) std::copy_n(addends_[left], width, sum);
    kernels.add(addends_[right], sum, width);
    addends_[left] = sum;
  }

  size_t ranks_;
  SlotCursor* cursors_;
  const float** addends_;  // null: the rank has not touched the row
  float* partial_;
};

template <class Body>
void for_each_sum(std::span<const SlotSum> sums, const Context& context, Body body) {
  size_t most = 0;
  for (const SlotSum& sum : sums) most = std::max(most, Addition::bytes(sum));
  for_each_with_scratch(std::ssize(sums), most, context, [&](int64_t i, std::byte* scratch) {
    const auto s = static_cast<size_t>(i);
    Addition addition(sums[s], scratch);
    body(s, addition);
  });
}

}  // namespace

void find_rows(std::span<const RowSearch> searches, const Context& context) {
  for_each_task(searches.size(), context, [&](size_t i) {
    const RowSearch& search = searches[i];
    const int64_t* const end = search.rows + search.count;
    for (size_t b = 0; b < search.bounds.size(); ++b) {
      search.before[b] = std::lower_bound(search.rows, end, search.bounds[b]) - search.rows;
    }
  });
}

void pack_slots(std::span<const SlotPacking> slots, const Context& context) {
  for_each_task(slots.size(), context, [&](size_t i) { pack(slots[i]); });
}

void check_slots(std::span<const SlotRows> slots, std::span<uint8_t> good, const Context& context) {
  for_each_task(slots.size(), context, [&](size_t i) {
    good[i] = (slots[i].bits ? are_the_bits(slots[i]) : is_the_list(slots[i])) ? 1 : 0;
  });
}

void count_slot_sums(std::span<const SlotSum> sums, std::span<int64_t> rows,
                     const Context& context) {
  for_each_sum(sums, context, [&](size_t s, Addition& addition) {
    int64_t count = 0;
    for (int64_t row = addition.lowest_row(); row != SlotCursor::kEnd;
         row = addition.lowest_row()) {
      addition.skip(row);
      ++count;
    }
    rows[s] = count;
  });
}

void add_slots(std::span<const SlotSum> sums, const Context& context) {
  for_each_sum(sums, context, [&](size_t s, Addition& addition) {
    const SlotRoom& to = sums[s].to;
    IndexWriter index(to);
    float* out = to.gradients;
    for (int64_t row = addition.lowest_row(); row != SlotCursor::kEnd;
         row = addition.lowest_row()) {
      index.add(row);
      std::copy_n(addition.sum(row, to.width, context.kernels), to.width, out);
      out += to.width;
    }
  });
}

void unpack_slots(std::span<const SlotUnpacking> tables, const Context& context) {
  for_each_task(tables.size(), context, [&](size_t i) {
    int64_t at = 0;
    for (const SlotRows& slot : tables[i].slots) {
      for (SlotCursor cursor(slot); cursor.row() != SlotCursor::kEnd; cursor.next(), ++at) {
        tables[i].rows[at] = cursor.row();
        tables[i].gradients[at] = cursor.gradient();
      }
    }
  });
}

}  // namespace shardrec::compute::cpu
