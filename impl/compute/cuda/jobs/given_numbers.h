// Numbers as a caller has given them, which are looked through (cuda_plugin.h).
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/elements.h"
#include "compute/cuda/jobs/tiles.h"

#ifdef __cplusplus
extern "C" {
#endif

// compute::GivenNumbers. first becomes ~i of the first number i = row * columns + column that is NaN or infinite; it
// is 0 before, and stays so where there is none. A block of threads takes SHARDREC_CUDA_TILE numbers.
typedef struct shardrec_cuda_given_numbers {
  const void *data;
  int64_t rows;
  int64_t columns;
  int64_t stride;
  int32_t element;
  int32_t reserved;  // 0
  uint64_t *first;
} shardrec_cuda_given_numbers;

#ifdef __cplusplus
}
#endif

// The operations, each with what it takes behind its stream; and the functions that load their kernels.
#define SHARDREC_CUDA_GIVEN_NUMBERS_OPERATIONS(OPERATION) \
  OPERATION(search_non_finite, const shardrec_cuda_given_numbers *numbers)
#define SHARDREC_CUDA_GIVEN_NUMBERS_LOADERS(LOADER) LOADER(load_given_numbers)
