// Rows of floats in fewer bytes, while they travel (cuda_plugin.h).
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/elements.h"

#ifdef __cplusplus
extern "C" {
#endif

// compute::ColumnRange.
typedef struct shardrec_cuda_column_range {
  int64_t begin;
  int64_t end;
} shardrec_cuda_column_range;

// compute::RowCoding.
typedef struct shardrec_cuda_row_coding {
  int64_t rows;
  int64_t width;
  int32_t element;
  int32_t lanes;  // threads that code a box of a row together
  const shardrec_cuda_column_range *boxes;
  int64_t box_count;
} shardrec_cuda_row_coding;

typedef struct shardrec_cuda_row_encoding {
  shardrec_cuda_row_coding coding;
  const float *floats;
  unsigned char *coded;
} shardrec_cuda_row_encoding;

typedef struct shardrec_cuda_row_decoding {
  shardrec_cuda_row_coding coding;
  const unsigned char *coded;
  float *floats;
} shardrec_cuda_row_decoding;

// Which kernel codes them. Codings of one kind are one launch.
typedef struct shardrec_cuda_row_coding_kind {
  int32_t boxed;  // in 8 bits, by box; otherwise numbers of an element
  // Are addresses multiples of 16 bytes, and the numbers of a list, or of rows and boxes and before
  // these, multiples of 4?
  int32_t vectors;
} shardrec_cuda_row_coding_kind;

// Vectors, or numbers, of a list that a thread converts; a block of threads kThreads times as many. Of
// codings by box, a block has kThreads / lanes boxes of rows.
#define SHARDREC_CUDA_CONVERSIONS_AT_ONCE 4

#ifdef __cplusplus
}
#endif
