// Rows that are below bounds, counted (cuda_plugin.h).
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
