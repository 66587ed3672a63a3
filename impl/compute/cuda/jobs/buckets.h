// Operations on the gradients of dense parameters: sums over the ranks, norms, and what is not finite (dense/ddp).
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/elements.h"

#ifdef __cplusplus
extern "C" {
#endif

// Beside the types of elements.h.
enum { SHARDREC_CUDA_FLOAT64 = 16, SHARDREC_CUDA_NO_ELEMENT = -1 };

// Elements of a block of threads of add_ranks and find_non_finite.
#define SHARDREC_CUDA_BUCKET_TILE 1024
// Inputs that are added up at most.
#define SHARDREC_CUDA_MOST_ADDENDS 4095
// Elements of which a norm takes one sum (dense/extents.h), and those of 16 bits that it adds up at once.
#define SHARDREC_CUDA_NORM_BLOCK 16384
#define SHARDREC_CUDA_NORM_PIECE 2048
// Such sums that a block of threads takes.
#define SHARDREC_CUDA_NORMS_AT_ONCE 16

// out[i] is made of element i of each input, for i < count. out may be the only input.
typedef struct shardrec_cuda_bucket_run {
  const void *const *inputs;  // [addends]; null: zeros
  void *out;
  int64_t count;
} shardrec_cuda_bucket_run;

// The tree over the inputs (comm/collective/reduce.h), times or by a divisor, times a factor, bounded; then rounded
// to the type of the results. In float32, or in float64 where elements are.
typedef struct shardrec_cuda_rank_sum {
  const shardrec_cuda_bucket_run *runs;
  const int64_t *first_block;  // [run_count + 1]: blocks of threads of the runs before each
  int32_t run_count;
  int32_t reserved;  // 0
  int64_t blocks;
  int32_t addends;
  int32_t from;
  int32_t to;
  int32_t
      through;  // what float32 inputs are rounded to before they are added; SHARDREC_CUDA_NO_ELEMENT: nothing
  int32_t divides;     // by scale, else multiplies with it
  int32_t reserved_2;  // 0
  double scale;
  double factor;
  double bound;  // of magnitudes; below 0: none
  uint64_t *
      saturated;  // finite numbers stay finite as float16, and those that would not are counted; null: they do not
} shardrec_cuda_rank_sum;

// The gradient of a parameter.
typedef struct shardrec_cuda_gradient {
  const void *elements;
  int64_t count;
  int64_t first_result;
} shardrec_cuda_gradient;

typedef struct shardrec_cuda_gradient_list {
  const shardrec_cuda_gradient *gradients;
  const int64_t *first_unit;  // [count + 1]: units of work of the gradients before each
  int32_t count;
  int32_t element;  // of all
  int64_t units;
} shardrec_cuda_gradient_list;

// A unit: SHARDREC_CUDA_NORM_BLOCK elements of a gradient. Its sum of squares of elements times a scale, as
// dense/gradient_norm.h has it, or its largest magnitude (NaN, where there is one); with a scale of float64 only.
typedef struct shardrec_cuda_norm_blocks {
  shardrec_cuda_gradient_list list;
  double scale;
  int32_t largest;
  int32_t reserved;  // 0
  double *results;
} shardrec_cuda_norm_blocks;

// A unit: SHARDREC_CUDA_BUCKET_TILE elements. results[first_result] becomes the position of the first element that is
// not finite, where that is less than it was.
typedef struct shardrec_cuda_non_finite {
  shardrec_cuda_gradient_list list;
  uint64_t *results;
} shardrec_cuda_non_finite;

#ifdef __cplusplus
}
#endif

// The operations, each with what it takes behind its stream; and the functions that load their kernels.
#define SHARDREC_CUDA_BUCKETS_OPERATIONS(OPERATION)                 \
  OPERATION(add_ranks, const shardrec_cuda_rank_sum *sum)           \
  OPERATION(sum_norm_blocks, const shardrec_cuda_norm_blocks *norm) \
  OPERATION(find_non_finite, const shardrec_cuda_non_finite *search)
#define SHARDREC_CUDA_BUCKETS_LOADERS(LOADER) LOADER(load_rank_sums) LOADER(load_gradient_norms)
