// Gradients of rows that are kept over lookups (cuda_plugin.h).
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// compute::KeptGradients: each row has a slot, numbered as the rows came, and a slot the gradient's
// address. Rows ascend.
typedef struct shardrec_cuda_kept_rows {
  int64_t *rows;      // [count]
  uint32_t *slots;    // [count]: of each row
  float **gradients;  // [count]: by slot
  int64_t count;
} shardrec_cuda_kept_rows;

// A lookup's rows, ascending, with their gradients [count, width], that are added to those kept. Rows
// that are new are counted first (find_new_rows); then there is room for them (add_kept).
typedef struct shardrec_cuda_kept_addition {
  shardrec_cuda_kept_rows kept;
  const int64_t *rows;
  const float *gradients;
  int64_t count;
  int64_t width;
  uint32_t *places;      // [count]: kept rows below each; then its slot
  uint32_t *new_before;  // [count + 1]: new rows below each, and all
  void *room;  // of find_new_rows, room_bytes; null: room_bytes is set, and nothing else done
  uint64_t room_bytes;
  // Of add_kept.
  shardrec_cuda_kept_rows merged;  // the kept rows and the new ones
  float *new_gradients;            // of the new rows
  int32_t vectors;    // are all rows of gradients multiples of 16 bytes, and lie at such?
  int32_t lane_bits;  // 2^lane_bits threads, at most 32, add a row together
} shardrec_cuda_kept_addition;

#ifdef __cplusplus
}
#endif
