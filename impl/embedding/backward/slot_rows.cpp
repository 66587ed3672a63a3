#include "embedding/backward/slot_rows.h"

#include <bit>
#include <cstring>

#include "core/error.h"
#include "embedding/exchange/wire.h"

namespace shardrec::embedding {
namespace {

size_t words_of(int64_t rows) { return static_cast<size_t>((rows + kSlotGrain - 1) / kSlotGrain); }

size_t index_bytes(const SlotForm& form, const Slot& slot, int64_t count) {
  return form.bits ? words_of(slot.rows()) * sizeof(uint64_t)
                   : align_up(static_cast<size_t>(count) * sizeof(uint32_t), 8);
}

size_t gradient_bytes(const SlotForm& form, int64_t count) {
  return align_up(static_cast<size_t>(count * form.width) * sizeof(float), 8);
}

bool are_the_bits(const Slot& slot, const SlotRows& rows) {
  const size_t words = words_of(slot.rows());
  int64_t set = 0;
  for (size_t w = 0; w < words; ++w) set += std::popcount(rows.bits[w]);
  const int64_t last = slot.rows() % kSlotGrain;
  return set == rows.count && (last == 0 || rows.bits[words - 1] >> last == 0);
}

bool is_the_list(const Slot& slot, const SlotRows& rows) {
  for (int64_t i = 0; i < rows.count; ++i) {
    if (i != 0 && rows.list[i - 1] >= rows.list[i]) return false;
  }
  return rows.count == 0 || int64_t{rows.list[rows.count - 1]} < slot.rows();
}

}  // namespace

size_t slot_bytes(const SlotForm& form, const Slot& slot, int64_t count) {
  return sizeof(int64_t) + index_bytes(form, slot, count) + gradient_bytes(form, count);
}

std::byte* write_slot_rows(const SlotForm& form, const Slot& slot, std::span<const int64_t> rows,
                           std::byte* to) {
  const auto count = static_cast<int64_t>(rows.size());
  std::memcpy(to, &count, sizeof count);
  to += sizeof count;
  const size_t bytes = index_bytes(form, slot, count);
  std::memset(to, 0, bytes);
  if (form.bits) {
    auto* const words = static_cast<uint64_t*>(static_cast<void*>(to));
    for (const int64_t row : rows) {
      const int64_t bit = row - slot.begin;
      words[bit / kSlotGrain] |= uint64_t{1} << (bit % kSlotGrain);
    }
  } else {
    auto* list = static_cast<uint32_t*>(static_cast<void*>(to));
    for (const int64_t row : rows) *list++ = static_cast<uint32_t>(row - slot.begin);
  }
  return to + bytes;
}

void throw_malformed_slot(int rank) {
  core::fail(SHARDREC_CORRUPT_DATA,
             core::sentence("rank ", rank, " sent malformed gradients of replicated tables"),
             {.rank = int64_t{rank}, .operation = "backward"});
}

SlotRows read_slot_rows(const SlotForm& form, const Slot& slot, comm::ConstBytes& rest, int rank) {
  const auto take = [&](size_t bytes) {
    if (rest.size() < bytes) throw_malformed_slot(rank);
    const void* data = rest.data();
    rest = rest.subspan(bytes);
    return data;
  };
  SlotRows rows;
  std::memcpy(&rows.count, take(sizeof rows.count), sizeof rows.count);
  if (rows.count < 0 || rows.count > slot.rows()) throw_malformed_slot(rank);
  const void* index = take(index_bytes(form, slot, rows.count));
  if (form.bits) {
    rows.bits = static_cast<const uint64_t*>(index);
    if (!are_the_bits(slot, rows)) throw_malformed_slot(rank);
  } else {
    rows.list = static_cast<const uint32_t*>(index);
    if (!is_the_list(slot, rows)) throw_malformed_slot(rank);
  }
  rows.gradients = static_cast<const float*>(take(gradient_bytes(form, rows.count)));
  return rows;
}

SlotCursor::SlotCursor(const SlotRows& rows, const Slot& slot, int64_t width)
    : rows_(rows), begin_(slot.begin), width_(width), gradient_(rows.gradients) {
  if (rows_.bits != nullptr && rows_.count != 0) word_ = rows_.bits[0];
  find();
}

void SlotCursor::find() {
  if (taken_ == rows_.count) {
    row_ = kEnd;
  } else if (rows_.list != nullptr) {
    row_ = begin_ + rows_.list[taken_];
  } else {
    while (word_ == 0) word_ = rows_.bits[++at_];
    row_ = begin_ + static_cast<int64_t>(at_) * kSlotGrain + std::countr_zero(word_);
    word_ &= word_ - 1;
  }
}

}  // namespace shardrec::embedding
