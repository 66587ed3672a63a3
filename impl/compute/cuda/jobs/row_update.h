// Operations on touched rows of tables (cuda_plugin.h): compute::TouchedRows and what is done to them.
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/column_maps.h"
#include "compute/cuda/jobs/elements.h"

#ifdef __cplusplus
extern "C" {
#endif

// The gradients of a row of more occurrences are summed by a block of threads before the operations.
#define SHARDREC_CUDA_HOT_OCCURRENCES 512

// The touched rows of a shard, and the occurrences that their gradients are sums of: compute::RowUpdate.
typedef struct shardrec_cuda_touched_rows {
  const int64_t *rows;            // [count], of the shard
  const int64_t *run;             // [count + 1]
  const uint32_t *bags;           // by occurrence
  const float *weights;           // by occurrence; null: all 1
  const float *const *gradients;  // [bag_count]
  const uint32_t *blocks;         // [bag_count]
  int64_t count;
  int64_t bag_count;
  int64_t width;  // columns of the shard
  float gradient_scale;
  float block_start;
  // What is found out when the rows are opened:
  int32_t *hot_sum;    // [count], written for hot rows only: index of the sum, or -1: there is none
  float *hot_sums;     // of all shards; sum i begins at i * hot_stride, a multiple of 4
  int64_t hot_stride;  // floats
  uint32_t *unaligned;  // not 0: some gradient's address is no multiple of 16
} shardrec_cuda_touched_rows;

typedef struct shardrec_cuda_hot_row {
  int32_t shard;
  int64_t row;  // among the touched ones
} shardrec_cuda_hot_row;

// Finds the hot rows of all shards, and sums the gradients of as many of them as there is room for.
typedef struct shardrec_cuda_row_opening {
  const shardrec_cuda_touched_rows *shards;  // [count]
  const int64_t *first_block;  // [count + 1]: blocks of threads of the shards before each
  int32_t count;
  int64_t blocks;
  int64_t widest;                   // columns of a shard, at most
  shardrec_cuda_hot_row *hot_rows;  // [most_hot_rows]
  uint32_t most_hot_rows;
  uint32_t *hot_count;  // 0; counts those without room too
} shardrec_cuda_row_opening;

// compute::OptimizerStep, kind aside.
typedef struct shardrec_cuda_optimizer_step {
  int32_t decay;
  float learning_rate;
  float eps;
  float weight_decay;
  float beta1;
  float beta2;
  float one_minus_beta1;
  float one_minus_beta2;
  float bias1;
  float bias2;
  float momentum;
  float eta;
  float max_norm;
} shardrec_cuda_optimizer_step;

// How numbers of 16 bits are rounded when they are stored (compute/math/rounding.h).
typedef struct shardrec_cuda_rounding {
  int32_t stochastic;
  uint32_t key[2];
  uint32_t step;  // the last word of all counters
  int64_t first_row;
  const shardrec_cuda_column_map *maps;  // [map_count], of the shard's columns
  int64_t map_count;
} shardrec_cuda_rounding;

// What is done to some columns of touched rows: all columns, or a range of sums.
typedef struct shardrec_cuda_row_job {
  shardrec_cuda_touched_rows touched;
  int32_t first_column;  // among those of the shard
  int32_t columns;
  // Row r of the shard, from first_column on, begins at element r * stride of table and r * touched.width
  // of the matrices.
  void *table;
  int64_t stride;
  float *matrices[2];
  float *state;  // a float per row of the shard, where the optimizer has one
  // What was summed elsewhere, the numbers of touched row u at u * sums_stride: of an update the
  // optimizer's sums (null: they are taken here), of rescaling the squared norm.
  const float *sums;
  int64_t sums_stride;
  // Where results go, those of touched row u at u * out_stride: gradients, norms, or the sums of an
  // optimizer, which then changes nothing. Null: an update.
  float *out;
  int64_t out_stride;
  float sum_columns;  // that the sums of an update are over
  int32_t element;
  int32_t lanes;      // threads that have a row together, 2, 4, 8, 16 or 32
  int32_t tiles;      // that they walk the columns in: 1, but for 32 lanes
  int32_t tile_rows;  // that a warp takes: a multiple of 32 / lanes, at most 32
  shardrec_cuda_optimizer_step step;
  shardrec_cuda_rounding rounding;
} shardrec_cuda_row_job;

#define SHARDREC_CUDA_LEAST_ROW_LANES 2
// Columns that a lane has of a row, where a kernel loads 16 bytes at once; else one.
#define SHARDREC_CUDA_LANE_COLUMNS 8

enum {
  SHARDREC_CUDA_ROW_GRADIENTS = 0,
  SHARDREC_CUDA_ROW_UPDATE = 1,
  SHARDREC_CUDA_ROW_NORMS = 2,
  SHARDREC_CUDA_ROW_RESCALE = 3
};

// Which kernel takes them. Jobs of one kind are one launch.
typedef struct shardrec_cuda_row_kind {
  int32_t operation;
  int32_t optimizer;  // compute::OptimizerKind, of updates; else 0
  int32_t element;    // of the tables; 0 where vectors is 0
  // Do rows of tables, matrices and results begin and end at multiples of 16 bytes, gradients like the
  // shard's, and do four columns of a table that begin at a multiple of four stay together?
  int32_t vectors;
} shardrec_cuda_row_kind;

#ifdef __cplusplus
}
#endif
