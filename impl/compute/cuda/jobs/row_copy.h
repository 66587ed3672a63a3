// Rows copied from one place on a device to another (cuda_plugin.h).
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Row i of the copy is row from_numbers[i] of the source and row to_numbers[i] of the target; null: i. No
// number of the target stands there twice; what is read and what is written do not overlap.
typedef struct shardrec_cuda_row_copy {
  const void *from;
  void *to;
  int64_t from_stride;  // bytes
  int64_t to_stride;    // bytes
  const int64_t *from_numbers;
  const int64_t *to_numbers;
  int64_t rows;
  int64_t row_bytes;
} shardrec_cuda_row_copy;

#ifdef __cplusplus
}
#endif
