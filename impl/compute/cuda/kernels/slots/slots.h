// Touched rows in slots (compute::SlotShape): written, checked and read, a thread for each word of bits,
// pair of a list's numbers or gradient's number.
#pragma once

#include "compute/cuda/kernels/slots/slot_index.h"

namespace shardrec::compute::cuda {

// A word of bits of the rows of a slot, or two numbers of its list.
SHARDREC_DEVICE uint64_t index_word(const shardrec_cuda_slot_packing& job, int64_t word) {
  const shardrec_cuda_slot& slot = job.slot;
  uint64_t out = 0;
  if (slot.bits != 0) {
    const int64_t first = slot.begin + word * kWordRows;
    for (int64_t i = count_below(job.rows, slot.count, first);
         i < slot.count && job.rows[i] < first + kWordRows; ++i) {
      out |= uint64_t{1} << (job.rows[i] - first);
    }
    return out;
  }
  const int64_t i = 2 * word;
  if (i + 1 < slot.count) out = static_cast<uint64_t>(job.rows[i + 1] - slot.begin) << 32;
  return out | static_cast<uint64_t>(job.rows[i] - slot.begin);
}

SHARDREC_KERNEL(8) pack_slot_indexes(shardrec_cuda_slot_packings job) {
  const auto [s, begin] = own_tile(job.words);
  const shardrec_cuda_slot_packing& packing = job.slots[s];
  const int64_t words = index_words(packing.slot);
#pragma unroll 1
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t word = begin + item_of_tile(k);
    if (word >= words) break;
    packing.index[word] = index_word(packing, word);
  }
}

SHARDREC_KERNEL(6) pack_slot_gradients(shardrec_cuda_slot_packings job) {
  const auto [s, begin] = own_tile(job.floats);
  const shardrec_cuda_slot_packing& packing = job.slots[s];
  const int64_t floats = packing.slot.count * packing.slot.width;
  float read[kTileItems];
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t i = begin + item_of_tile(k);
    if (i < floats) read[k] = packing.slot.gradients[i];
  }
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t i = begin + item_of_tile(k);
    if (i < floats) packing.gradients[i] = read[k];
  }
}

// Is word w of an index what no slot has: a bit behind its last row, or numbers of a list that do not
// ascend or are none of the slot's?
SHARDREC_DEVICE bool is_wrong(const shardrec_cuda_slot& slot, int64_t w) {
  if (slot.bits != 0) {
    const int64_t left = slot.rows - w * kWordRows;
    return left < kWordRows && words_of(slot)[w] >> left != 0;
  }
  const uint32_t* const list = list_of(slot);
  bool wrong = false;
  for (int64_t i = 2 * w; i < slot.count && i < 2 * w + 2; ++i) {
    wrong |= (i > 0 && list[i - 1] >= list[i]) || int64_t{list[i]} >= slot.rows;
  }
  return wrong;
}

SHARDREC_KERNEL(8) check_slot_indexes(shardrec_cuda_slot_check job) {
  const auto [s, begin] = own_tile(job.words);
  const shardrec_cuda_slot& slot = job.slots[s];
  const int64_t words = index_words(slot);
  unsigned long long set = 0;
  bool wrong = false;
#pragma unroll 1
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t word = begin + item_of_tile(k);
    if (word >= words) break;
    wrong |= is_wrong(slot, word);
    if (slot.bits != 0) set += static_cast<unsigned>(__popcll(words_of(slot)[word]));
  }
  add_of_warp(&job.findings[s].set, set);
  if (wrong) atomicOr(&job.findings[s].wrong, 1);
}

SHARDREC_KERNEL(8) count_slot_bits(shardrec_cuda_slot_unpackings job) {
  const auto [s, begin] = own_tile(job.items);
  const shardrec_cuda_slot_unpacking& unpacking = job.slots[s];
  if (unpacking.slot.bits == 0) return;
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t word = begin + item_of_tile(k);
    if (word >= words_of_bits(unpacking.slot)) break;
    job.set_before[unpacking.first_word + word] =
        static_cast<uint32_t>(__popcll(words_of(unpacking.slot)[word]));
  }
}

// set_before: of all words of bits before each. A sum over all slots may wrap: the difference inside one
// does not.
SHARDREC_KERNEL(8) unpack_slot_rows(shardrec_cuda_slot_unpackings job) {
  const auto [s, begin] = own_tile(job.items);
  const shardrec_cuda_slot_unpacking& unpacking = job.slots[s];
  const shardrec_cuda_slot& slot = unpacking.slot;
  const auto write = [&](int64_t i, int64_t row) {
    unpacking.rows[i] = slot.begin + row;
    unpacking.gradients[i] = slot.gradients + i * slot.width;
  };
  const int64_t items = slot.bits != 0 ? words_of_bits(slot) : slot.count;
#pragma unroll 1
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t item = begin + item_of_tile(k);
    if (item >= items) break;
    if (slot.bits == 0) {
      write(item, list_of(slot)[item]);
      continue;
    }
    const uint32_t* const set_before = job.set_before + unpacking.first_word;
    int64_t i = set_before[item] - set_before[0];
    for (uint64_t word = words_of(slot)[item]; word != 0; word &= word - 1, ++i) {
      write(i, item * kWordRows + __ffsll(static_cast<long long>(word)) - 1);
    }
  }
}

}  // namespace shardrec::compute::cuda
