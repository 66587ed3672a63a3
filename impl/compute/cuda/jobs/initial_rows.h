// Initial values of tables (cuda_plugin.h).
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/elements.h"

#ifdef __cplusplus
extern "C" {
#endif

// Initial values of some columns of rows: compute::InitialRows, for one of its column maps. Row r of the
// rows is row first_row + r of its table, its columns are those from `column` on of the table.
typedef struct shardrec_cuda_initial_rows {
  void *data;      // row r begins at element r * stride
  int64_t stride;  // elements
  int64_t rows;
  int64_t first_row;
  int64_t column;
  int64_t columns;
  int32_t element;
  float last;  // compute::math::UniformRange, of the values of a table with this key
  double low;
  double span;
  uint64_t key;
} shardrec_cuda_initial_rows;

#ifdef __cplusplus
}
#endif
