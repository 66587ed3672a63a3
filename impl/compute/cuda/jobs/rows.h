// The touched rows of a step (cuda_plugin.h): grouped, and updated.
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/column_maps.h"
#include "compute/cuda/jobs/elements.h"
#include "compute/cuda/jobs/scans.h"
#include "compute/cuda/jobs/tiles.h"

#ifdef __cplusplus
extern "C" {
#endif

// Occurrences of rows in a batch, grouped by row.

// Samples of a block of samples (compute::kBlockSamples).
#define SHARDREC_CUDA_BLOCK_SAMPLES 512

// The ids of one feature from one source: compute::GroupedBlock.
typedef struct shardrec_cuda_grouped_block {
  const void *ids;
  const float *weights;      // null: all 1
  const uint32_t *first_id;  // [bags + 1], as shardrec_cuda_bag_index has them
  const uint32_t *sample;    // [bags]
  int64_t count;             // ids
  int64_t bags;              // not empty
  int32_t ids_are_64;
  int32_t sequence;          // each id is a bag of its own
  int64_t first_sample;      // number of sample 0 among those of all sources
  uint32_t feature_block;    // number of the feature's first block of samples
  uint32_t first_bag;        // bags of the part before
  int64_t first_occurrence;  // occurrences of all parts before
  uint64_t first_key;        // of the part's row 0
  uint32_t *block_of;        // by bag of the part: the block of samples it is in
} shardrec_cuda_grouped_block;

// A part's occurrences, which are side by side in the order of keys.
typedef struct shardrec_cuda_grouped_part {
  int64_t first_occurrence;
  int64_t occurrences;
  uint64_t first_key;
  int64_t *rows;  // room for a row per occurrence: the touched ones, ascending
  int64_t *run;   // one more: where the occurrences of each begin, and their end
} shardrec_cuda_grouped_part;

// All of a batch: occurrences in canonical order, sorted stably by key. Rows of parts have consecutive
// keys, in the order of the parts: keys of 32 bits where key_bits are at most 32, else of 64.
// Of a weighted batch a value is 64 bits, the bag's and above them the weight's, else the bag's 32.
typedef struct shardrec_cuda_row_grouping {
  const shardrec_cuda_grouped_block *blocks;
  const shardrec_cuda_grouped_part *parts;
  shardrec_cuda_tiles block_tiles;  // of ids
  shardrec_cuda_tiles part_tiles;   // of occurrences; a part without one has a tile
  int64_t occurrences;              // of all parts, as all lists below have them
  int32_t key_bits;                 // at least 1
  int32_t weighted;
  shardrec_cuda_scan scan;  // of the tiles of parts
  void *keys;
  void *values;
  void *sorted_keys;
  void *sorted_values;  // those of a batch without weights are `bags`
  uint32_t *bags;       // by occurrence, in the order of rows
  float *weights;       // null where the batch has none
  int64_t *row_counts;  // by part
  void *room;           // room_bytes; null: room_bytes is set, and nothing else is done
  uint64_t room_bytes;
} shardrec_cuda_row_grouping;

// Operations on touched rows of tables: compute::TouchedRows and what is done to them.

// Blocks of the gradients of a row of more occurrences (compute::RowUpdate::blocks) are summed by a warp each before
// the operations, which add these sums.
#define SHARDREC_CUDA_HOT_OCCURRENCES 512
// As far as a block has so many occurrences on average: a list of sums need not be longer than that.
#define SHARDREC_CUDA_OCCURRENCES_OF_A_SUM 8

typedef struct shardrec_cuda_hot_row {
  int32_t shard;
  uint32_t first_sum;    // of its sums
  uint32_t sums;         // one for each number from the first block's to the last one's
  uint32_t first_block;  // the first one's number
  int64_t row;           // among the touched ones
} shardrec_cuda_hot_row;

// The touched rows of a shard, and the occurrences that their gradients are sums of: compute::RowUpdate.
typedef struct shardrec_cuda_touched_rows {
  const int64_t *rows;            // [count], of the shard
  const int64_t *run;             // [count + 1]
  const uint32_t *bags;           // by occurrence
  const float *weights;           // by occurrence; null: all 1
  const float *const *gradients;  // by bag
  const uint32_t *blocks;         // by bag
  int64_t count;                  // of rows, at most
  const int64_t *there;           // how many there are; null: count
  int64_t bag_count;              // 0 where gradients are located when the rows are opened
  int64_t width;                  // columns of the shard
  float gradient_scale;
  float block_start;
  // What is found out when the rows are opened:
  int32_t *hot_row;  // [count], written for hot rows only: index of the hot row; -1: no sums
  const shardrec_cuda_hot_row *hot_rows;  // of all shards
  float *hot_sums;      // likewise; sum i begins at i * hot_stride, a multiple of 4
  int64_t hot_stride;   // floats
  uint32_t *unaligned;  // not 0: some gradient's address is no multiple of 16
  uint32_t *changed;  // a bit per row of the shard, set when the rows are opened; null: nobody asks
  uint64_t reserved;  // 0; what is behind it in a job begins at a multiple of 16 bytes
} shardrec_cuda_touched_rows;

// compute::GradientBlock: out[r] = data + stride * (sample[r], or r).
typedef struct shardrec_cuda_gradient_block {
  const float *data;
  int64_t stride;          // floats
  const uint32_t *sample;  // null: r
  int64_t rows;
  const float **out;
  uint32_t *unaligned;  // of the shard
} shardrec_cuda_gradient_block;

typedef struct shardrec_cuda_gradient_blocks {
  const shardrec_cuda_gradient_block *blocks;
  shardrec_cuda_tiles tiles;  // of rows
} shardrec_cuda_gradient_blocks;

// Writes the addresses of gradients that are located, finds the hot rows of all shards, and sums the blocks of as many
// of them as there is room for.
typedef struct shardrec_cuda_row_opening {
  shardrec_cuda_gradient_blocks located;
  const shardrec_cuda_touched_rows *shards;  // [count]
  const int64_t *first_block;  // [count + 1]: blocks of threads of the shards before each
  int32_t count;
  int32_t reserved;  // 0
  int64_t blocks;
  int64_t widest;                   // columns of a shard, at most
  shardrec_cuda_hot_row *hot_rows;  // [most_hot_rows]
  int32_t *row_of_sum;              // [most_hot_sums]: index of the hot row, or -1
  uint32_t most_hot_rows;
  uint32_t most_hot_sums;
  uint32_t *hot_count;      // 0; counts those without room too
  uint32_t *hot_sum_count;  // likewise
} shardrec_cuda_row_opening;

// How many rows of each shard operations find: none where the stop (compute::Stop) says so.
typedef struct shardrec_cuda_row_guard {
  const uint64_t *stop;           // in pinned memory
  const int64_t *const *counted;  // by shard: how many there are; null: as `counts` says
  const int64_t *counts;          // by shard
  int64_t *there;                 // by shard: written
  uint64_t
      *updates;  // compute::Stop::updates(), for an update; null: it is for what comes before one
  int32_t shards;
  int32_t reserved;  // 0
} shardrec_cuda_row_guard;

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
  int32_t part_bits;  // of a wide update: 2^part_bits slots of a lane are of one row; else 0
  int32_t tiles;      // that columns are walked in: 1, but where all slots of a lane are of one row
  int32_t tile_rows;  // that a warp takes: at most 32; where waves have several rows, full waves
  shardrec_cuda_optimizer_step step;
  int32_t reserved;  // 0
  shardrec_cuda_rounding rounding;
} shardrec_cuda_row_job;

#define SHARDREC_CUDA_LEAST_ROW_LANES 2
// Columns that a lane has of a row, where a kernel loads 16 bytes at once; else one.
#define SHARDREC_CUDA_LANE_COLUMNS 4
// A lane of an update has so many of these at one time, of several rows, or of one that has more columns
// than 32 lanes: of optimizers without, and with, matrices of state.
#define SHARDREC_CUDA_ROW_SLOTS 4
#define SHARDREC_CUDA_ROW_SLOTS_WITH_MATRICES 2
// Rows of a warp at one time, at most, for each slot of a lane.
#define SHARDREC_CUDA_ROWS_OF_A_SLOT 8

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
  // Of updates: may rows have more columns than 32 lanes with one slot each?
  int32_t wide;
} shardrec_cuda_row_kind;

#ifdef __cplusplus
}
#endif

// The operations, each with what it takes behind its stream; and the functions that load their kernels.
// - work_on_rows: first_block: [count + 1], the blocks of threads of the jobs before each; blocks: of all. A
//   warp takes tile_rows rows of a job.
#define SHARDREC_CUDA_ROWS_OPERATIONS(OPERATION)                                                 \
  OPERATION(group_rows, shardrec_cuda_row_grouping *grouping)                                    \
  OPERATION(open_rows, const shardrec_cuda_row_opening *opening)                                 \
  OPERATION(guard_rows, const shardrec_cuda_row_guard *guard)                                    \
  OPERATION(work_on_rows, const shardrec_cuda_row_kind *kind, const shardrec_cuda_row_job *jobs, \
            const int64_t *first_block, int32_t count, int64_t blocks)
#define SHARDREC_CUDA_ROWS_LOADERS(LOADER) LOADER(load_row_groups) LOADER(load_row_operations)
