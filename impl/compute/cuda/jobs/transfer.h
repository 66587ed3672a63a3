// Rows on their way (cuda_plugin.h): their initial values, copies of them, and rows of floats in fewer bytes.
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/elements.h"

#ifdef __cplusplus
extern "C" {
#endif

// Initial values of tables.

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

// Rows of floats in fewer bytes, while they travel.

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

// Rows copied from one place on a device to another.

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

// Means over ranks: compute::RankMeans.

typedef struct shardrec_cuda_rank_means {
  const void *const *elements;  // [ranks] lists of `count` elements
  void *means;
  int64_t count;
  int32_t element;
  int32_t ranks;  // SHARDREC_CUDA_SUM_RANKS at most
} shardrec_cuda_rank_means;

// What copies of rows have gained: compute::RowGains.

typedef struct shardrec_cuda_row_gains {
  void *rows;
  const void *before;
  const void *after;
  const int64_t *numbers;  // null: row i is row i
  int64_t stride;          // elements
  int64_t count;
  int64_t width;
  int32_t element;
  int32_t at_least_zero;
} shardrec_cuda_row_gains;

// What a message brings, once it has come.

// compute::Stop: where the word is not 0, the bytes, a multiple of 16 at one, become zeros.
typedef struct shardrec_cuda_arrival {
  const uint64_t *stop;  // in pinned memory
  void *bytes;
  int64_t count;
} shardrec_cuda_arrival;

#ifdef __cplusplus
}
#endif

// The operations, each with what it takes behind its stream; and the functions that load their kernels.
// - encode_rows: first_block: [count + 1], the blocks of the codings before each; blocks: of all.
// - decode_rows: first_block: [count + 1], the blocks of the codings before each; blocks: of all.
#define SHARDREC_CUDA_TRANSFER_OPERATIONS(OPERATION)                                           \
  OPERATION(fill_rows, const shardrec_cuda_initial_rows *rows)                                 \
  OPERATION(copy_rows, const shardrec_cuda_row_copy *rows)                                     \
  OPERATION(average_ranks, const shardrec_cuda_rank_means *job)                                \
  OPERATION(add_row_gains, const shardrec_cuda_row_gains *job)                                 \
  OPERATION(clear_if_stopped, const shardrec_cuda_arrival *arrival)                            \
  OPERATION(encode_rows, const shardrec_cuda_row_coding_kind *kind,                            \
            const shardrec_cuda_row_encoding *jobs, const int64_t *first_block, int32_t count, \
            int64_t blocks)                                                                    \
  OPERATION(decode_rows, const shardrec_cuda_row_coding_kind *kind,                            \
            const shardrec_cuda_row_decoding *jobs, const int64_t *first_block, int32_t count, \
            int64_t blocks)
#define SHARDREC_CUDA_TRANSFER_LOADERS(LOADER) \
  LOADER(load_initial_rows)                    \
  LOADER(load_row_copies)                      \
  LOADER(load_row_codes) LOADER(load_arrivals) LOADER(load_rank_means) LOADER(load_row_gains)
