// Sums over the ranks (cuda_plugin.h): of gradients of rows that all ranks hold, and of statistics over whole rows.
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/tiles.h"

#ifdef __cplusplus
extern "C" {
#endif

// Rows that are below bounds, counted.

// How many of some ascending rows are below a bound: one of a compute::RowSearch.
typedef struct shardrec_cuda_row_bound {
  const int64_t *rows;
  int64_t count;
  int64_t bound;
} shardrec_cuda_row_bound;

typedef struct shardrec_cuda_row_search {
  const shardrec_cuda_row_bound *bounds;
  int64_t count;
  int64_t *before;  // [count]
} shardrec_cuda_row_search;

// Touched rows of tables that all ranks hold, in slots.

// compute::SlotShape, with what is read: as compute::SlotRows.
typedef struct shardrec_cuda_slot {
  const void *index;       // uint64_t words of bits, or a list of uint32_t
  const float *gradients;  // [count, width]
  int64_t begin;
  int64_t rows;
  int64_t count;
  int64_t width;
  int32_t bits;
  int32_t reserved;  // 0: jobs are equal where their bytes are
} shardrec_cuda_slot;

// compute::SlotPacking: a slot's index, of so many words of 8 bytes, and its gradients.
typedef struct shardrec_cuda_slot_packing {
  const int64_t *rows;      // [slot.count]
  shardrec_cuda_slot slot;  // its gradients are those of the rows
  uint64_t *index;
  float *gradients;
} shardrec_cuda_slot_packing;

typedef struct shardrec_cuda_slot_packings {
  const shardrec_cuda_slot_packing *slots;
  shardrec_cuda_tiles words;   // of their indexes
  shardrec_cuda_tiles floats;  // of their gradients
} shardrec_cuda_slot_packings;

// What a slot's index holds: bits that are set; and 1 where something in it is wrong. Zeros before.
typedef struct shardrec_cuda_slot_finding {
  unsigned long long set;
  unsigned long long wrong;
} shardrec_cuda_slot_finding;

typedef struct shardrec_cuda_slot_check {
  const shardrec_cuda_slot *slots;
  shardrec_cuda_tiles words;
  shardrec_cuda_slot_finding *findings;  // by slot
} shardrec_cuda_slot_check;

// A slot of a compute::SlotUnpacking.
typedef struct shardrec_cuda_slot_unpacking {
  shardrec_cuda_slot slot;
  int64_t *rows;
  const float **gradients;
  int64_t first_word;  // of bits: among the words of all slots of bits
} shardrec_cuda_slot_unpacking;

typedef struct shardrec_cuda_slot_unpackings {
  const shardrec_cuda_slot_unpacking *slots;
  shardrec_cuda_tiles items;  // words of bits, numbers of lists
  int64_t words;              // of all slots of bits
  uint32_t *set_before;       // [words]: bits set in all words before
  void *room;                 // room_bytes; null: room_bytes is set, and nothing else is done
  uint64_t room_bytes;
} shardrec_cuda_slot_unpackings;

// Sums over the ranks of the gradients of slots, and of statistics of whole rows.

// A row's sum is a pairwise tree over so many ranks at most.
#define SHARDREC_CUDA_SUM_LEVELS 13
#define SHARDREC_CUDA_SUM_RANKS ((1 << SHARDREC_CUDA_SUM_LEVELS) - 1)

// compute::SlotSum. All addends are of one form and have the rows of one slot.
typedef struct shardrec_cuda_slot_sum {
  const shardrec_cuda_slot *addends;  // [ranks]
  int32_t ranks;
  int32_t reserved;    // 0
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
  int32_t reserved;  // 0
  void *room;        // room_bytes; null: room_bytes is set, and nothing else is done
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

// The operations, each with what it takes behind its stream; and the functions that load their kernels.
#define SHARDREC_CUDA_SLOTS_OPERATIONS(OPERATION)                \
  OPERATION(find_rows, const shardrec_cuda_row_search *job)      \
  OPERATION(pack_slots, const shardrec_cuda_slot_packings *job)  \
  OPERATION(check_slots, const shardrec_cuda_slot_check *job)    \
  OPERATION(unpack_slots, shardrec_cuda_slot_unpackings *job)    \
  OPERATION(count_slot_sums, const shardrec_cuda_slot_sums *job) \
  OPERATION(add_slots, shardrec_cuda_slot_sums *job)             \
  OPERATION(add_row_totals, const shardrec_cuda_row_totals *job)
#define SHARDREC_CUDA_SLOTS_LOADERS(LOADER) \
  LOADER(load_row_searches) LOADER(load_slots) LOADER(load_slot_sums) LOADER(load_row_totals)
