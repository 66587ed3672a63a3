// Sums over the ranks of the gradients of slots (compute::SlotSum). No rank's rows are walked: where a
// row stands, in a slot and in the sum, is the number of rows before it, from a scan over words of bits,
// or from searches in lists.
#pragma once

#include "compute/cuda/jobs/slots.h"
#include "compute/cuda/kernels/rank_tree.h"
#include "compute/cuda/kernels/slots/slot_index.h"

namespace shardrec::compute::cuda {

// Has one of the ranks before `rank` touched a row?
SHARDREC_DEVICE bool is_listed_before(const shardrec_cuda_slot_sum& sum, int32_t rank,
                                      uint32_t row) {
#pragma unroll 1
  for (int32_t r = 0; r < rank; ++r) {
    const shardrec_cuda_slot& slot = sum.addends[r];
    const int64_t place = count_below(list_of(slot), slot.count, row);
    if (place < slot.count && list_of(slot)[place] == row) return true;
  }
  return false;
}

SHARDREC_DEVICE uint64_t union_word(const shardrec_cuda_slot_sum& sum, int64_t word) {
  uint64_t out = 0;
#pragma unroll 4
  for (int32_t r = 0; r < sum.ranks; ++r) {
    // One that has no rows says so by its count alone.
    if (sum.addends[r].count != 0) out |= words_of(sum.addends[r])[word];
  }
  return out;
}

SHARDREC_DEVICE uint32_t mark_of(const shardrec_cuda_slot_sum& sum,
                                 const shardrec_cuda_slot_list& list, int64_t item) {
  if (sum.to.bits != 0) {
    const uint64_t word = list.rank == sum.ranks ? union_word(sum, item)
                          : sum.addends[list.rank].count == 0
                              ? 0
                              : words_of(sum.addends[list.rank])[item];
    return static_cast<uint32_t>(__popcll(word));
  }
  return is_listed_before(sum, list.rank, list_of(sum.addends[list.rank])[item]) ? 0 : 1;
}

SHARDREC_KERNEL(4) mark_slot_rows(shardrec_cuda_slot_sums job) {
  const auto [l, begin] = own_tile(job.items);
  const shardrec_cuda_slot_list list = job.lists[l];
  const shardrec_cuda_slot_sum& sum = job.sums[list.sum];
  unsigned long long marked = 0;
#pragma unroll 1
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t item = begin + item_of_tile(k);
    if (item >= list.items) break;
    const uint32_t mark = mark_of(sum, list, item);
    if (job.marks != nullptr) job.marks[list.first_item + item] = mark;
    marked += mark;
  }
  // Of bits, the union of all ranks says how many rows there are.
  if (job.counts == nullptr || (sum.to.bits != 0 && list.rank != sum.ranks)) return;
  add_of_warp(&job.counts[list.sum], marked);
}

// From here on marks are those before each item, of all lists; a sum over them may wrap, the difference
// inside a list does not.
SHARDREC_DEVICE uint32_t marked_before(const shardrec_cuda_slot_sums& job, int64_t list,
                                       int64_t item) {
  const int64_t first = job.lists[list].first_item;
  return job.marks[first + item] - job.marks[first];
}

// Where a row that a list has comes to stand in the sum.
SHARDREC_DEVICE int64_t place_of(const shardrec_cuda_slot_sums& job,
                                 const shardrec_cuda_slot_sum& sum, uint32_t row) {
  int64_t place = 0;
  for (int32_t r = 0; r < sum.ranks; ++r) {
    const shardrec_cuda_slot& slot = sum.addends[r];
    place += marked_before(job, sum.first_list + r, count_below(list_of(slot), slot.count, row));
  }
  return place;
}

SHARDREC_KERNEL(6) write_sum_indexes(shardrec_cuda_slot_sums job) {
  const auto [l, begin] = own_tile(job.items);
  const shardrec_cuda_slot_list list = job.lists[l];
  const shardrec_cuda_slot_sum& sum = job.sums[list.sum];
  if (sum.to.bits != 0 && list.rank != sum.ranks) return;
#pragma unroll 1
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t item = begin + item_of_tile(k);
    if (item >= list.items) break;
    if (sum.to.bits != 0) {
      static_cast<uint64_t*>(sum.index)[item] = union_word(sum, item);
      continue;
    }
    if (marked_before(job, l, item + 1) == marked_before(job, l, item)) continue;
    const uint32_t row = list_of(sum.addends[list.rank])[item];
    const int64_t place = place_of(job, sum, row);
    auto* const index = static_cast<uint32_t*>(sum.index);
    index[place] = row;
    // The end of a list is zeros.
    if (place + 1 == sum.to.count && sum.to.count % 2 == 1) index[place + 1] = 0;
  }
}

// A row of a sum, and the word of bits that it is in.
struct SumRow {
  int64_t word;
  uint64_t bit;
  uint32_t number;  // of a list: the row itself
};

SHARDREC_DEVICE SumRow row_of_sum(const shardrec_cuda_slot_sums& job,
                                  const shardrec_cuda_slot_sum& sum, int64_t place) {
  if (sum.to.bits == 0) return {.word = 0, .bit = 0, .number = list_of(sum.to)[place]};
  // The last word that no more than `place` rows are before.
  const int64_t list = sum.first_list + sum.ranks;
  int64_t first = 0;
  int64_t end = words_of_bits(sum.to);
  while (end - first > 1) {
    const int64_t middle = first + (end - first) / 2;
    if (marked_before(job, list, middle) <= place) {
      first = middle;
    } else {
      end = middle;
    }
  }
  uint64_t word = words_of(sum.to)[first];
  for (int64_t skip = place - marked_before(job, list, first); skip > 0; --skip) word &= word - 1;
  return {.word = first, .bit = word & (~word + 1), .number = 0};
}

// The gradient of a row from a rank; null: it has not touched the row.
SHARDREC_DEVICE const float* gradient_of(const shardrec_cuda_slot_sums& job,
                                         const shardrec_cuda_slot_sum& sum, int32_t rank,
                                         const SumRow& row) {
  const shardrec_cuda_slot& slot = sum.addends[rank];
  if (slot.count == 0) return nullptr;
  int64_t place = 0;
  if (slot.bits != 0) {
    const uint64_t word = words_of(slot)[row.word];
    if ((word & row.bit) == 0) return nullptr;
    place = int64_t{marked_before(job, sum.first_list + rank, row.word)} +
            __popcll(word & (row.bit - 1));
  } else {
    place = count_below(list_of(slot), slot.count, row.number);
    if (place == slot.count || list_of(slot)[place] != row.number) return nullptr;
  }
  return slot.gradients + place * slot.width;
}

// A warp for each row of a sum: a lane finds the gradient of a rank, and adds up columns.
template <int kLevels>
SHARDREC_KERNEL(4)
add_slot_gradients(shardrec_cuda_slot_sums job) {
  const auto [s, begin] = own_tile(job.rows);
  const shardrec_cuda_slot_sum& sum = job.sums[s];
  const int64_t left = sum.to.count - begin;
  const int rows = left < kTile ? static_cast<int>(left) : kTile;
  for (int i = warp_index(); i < rows; i += kWarps) {
    const SumRow row = row_of_sum(job, sum, begin + i);
    float* const out = sum.gradients + (begin + i) * sum.to.width;
    for (int64_t first = 0; first < sum.to.width; first += kWarp) {
      const int64_t column = first + lane_index();
      RankTree<kLevels> tree;
      for (int32_t chunk = 0; chunk < sum.ranks; chunk += kWarp) {
        const int32_t own = chunk + lane_index();
        const float* const found = own < sum.ranks ? gradient_of(job, sum, own, row) : nullptr;
        const int ranks = sum.ranks - chunk < kWarp ? sum.ranks - chunk : kWarp;
        for (int r = 0; r < ranks; ++r) {
          const auto* const gradient = reinterpret_cast<const float*>(
              __shfl_sync(kAllLanes, reinterpret_cast<unsigned long long>(found), r));
          const bool reads = gradient != nullptr && column < sum.to.width;
          tree.add(chunk + r, gradient != nullptr, reads ? gradient[column] : 0);
        }
      }
      if (column < sum.to.width) out[column] = tree.sum(sum.ranks);
    }
  }
}

}  // namespace shardrec::compute::cuda
