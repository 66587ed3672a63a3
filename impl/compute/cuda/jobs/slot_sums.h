// Sums over the ranks of the gradients of slots, and of statistics of whole rows (cuda_plugin.h).
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/slots.h"
#include "compute/cuda/jobs/tiles.h"

#ifdef __cplusplus
extern "C" {
#endif

// A row's sum is a pairwise tree over so many ranks at most.
#define SHARDREC_CUDA_SUM_LEVELS 13
#define SHARDREC_CUDA_SUM_RANKS ((1 << SHARDREC_CUDA_SUM_LEVELS) - 1)

// compute::SlotSum. All addends are of one form and have the rows of one slot.
typedef struct shardrec_cuda_slot_sum {
  const shardrec_cuda_slot *addends;  // [ranks]
  int32_t ranks;
  int64_t first_list;  // of its lists, in the order of ranks
  // What is written, and its shape.
  shardrec_cuda_slot to;
  void *index;
  float *gradients;
} shardrec_cuda_slot_sum;

// Of a sum of bits, the words of a rank or, behind all ranks, of the union of all; else the numbers of a
// rank's list. Each item is marked with the touched rows that it stands for: of bits those set, of a list
// 1 for a row that no rank before has.
typedef struct shardrec_cuda_slot_list {
  int32_t sum;
  int32_t rank;
  int64_t items;
  int64_t first_item;  // items of the lists before
} shardrec_cuda_slot_list;

// Marks are all that is needed for how many rows the sums have; for the sums, those before each item are
// added up.
typedef struct shardrec_cuda_slot_sums {
  const shardrec_cuda_slot_sum *sums;
  const shardrec_cuda_slot_list *lists;
  shardrec_cuda_tiles items;
  int64_t all_items;
  uint32_t *marks;             // [all_items + 1]; null: only counted
  unsigned long long *counts;  // by sum, zeros before: rows that it has; null: not wanted
  // Of a pass that adds: a warp for each row.
  shardrec_cuda_tiles rows;
  int32_t most_ranks;
  void *room;  // room_bytes; null: room_bytes is set, and nothing else is done
  uint64_t room_bytes;
} shardrec_cuda_slot_sums;

// compute::RowAddend and compute::RowTotals.
typedef struct shardrec_cuda_row_addend {
  const float *sums;
  int64_t stride;
  int64_t first;
  int64_t last;
} shardrec_cuda_row_addend;

typedef struct shardrec_cuda_row_total {
  const shardrec_cuda_row_addend *addends;
  int64_t addend_count;
  int64_t rows;
  int64_t values;
  float *out;
} shardrec_cuda_row_total;

typedef struct shardrec_cuda_row_totals {
  const shardrec_cuda_row_total *totals;
  shardrec_cuda_tiles values;  // of all rows
} shardrec_cuda_row_totals;

#ifdef __cplusplus
}
#endif
