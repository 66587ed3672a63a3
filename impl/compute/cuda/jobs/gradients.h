// Gradients on their way from outputs to the owners of rows (cuda_plugin.h): packed by the source, kept by the
// owner for a later step; and gradients of weights.
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/column_maps.h"
#include "compute/cuda/jobs/elements.h"
#include "compute/cuda/jobs/presence.h"
#include "compute/cuda/jobs/tiles.h"
#include "compute/cuda/jobs/transfer.h"

#ifdef __cplusplus
extern "C" {
#endif

// Gradients of outputs, packed for the owners of rows.

// compute::BagGradients, of the bags of a block that are not empty; or compute::SequenceGradients, of the
// ids of a sequence that went to some intervals.
typedef struct shardrec_cuda_gradients {
  // Of bags. Of a sequence: chunk_rows only, the ids there before each chunk.
  shardrec_cuda_sent_bags bags;
  int32_t of_sequence;
  int32_t reserved;          // 0
  const int32_t *intervals;  // null: all 0
  int32_t first_interval;
  int32_t end_interval;
  int64_t items;                  // samples, or ids
  const uint32_t *lengths;        // null: not divided
  const uint32_t *sample_starts;  // as compute::BagSamples
  const uint32_t *samples;
  const void *gradient;  // row r begins at element r * stride
  int64_t stride;
  const shardrec_cuda_column_map *columns;
  int64_t column_count;
  int64_t width;
  float divisor;
  float max_gradient;
  float *out;
  float *unscaled;     // null: not wanted
  int32_t lanes;       // threads that pack a row together
  int32_t reserved_2;  // 0
} shardrec_cuda_gradients;

// A chunk of items takes so many blocks of threads.
#define SHARDREC_CUDA_GRADIENT_SLICES 4

// Occurrences of rows that have one each.

// compute::SingleOccurrences.
typedef struct shardrec_cuda_single_occurrences {
  int64_t rows;
  int64_t *run;    // [rows + 1]
  uint32_t *bags;  // null: not wanted
  uint32_t *blocks;
} shardrec_cuda_single_occurrences;

// Gradients of rows that are kept over lookups.

// compute::KeptGradients: each row has an entry, numbered as the rows came, and an entry the gradient's
// address. Rows ascend.
typedef struct shardrec_cuda_kept_rows {
  int64_t *rows;      // [count]
  uint32_t *entries;  // [count]: of each row
  float **gradients;  // [count]: by entry
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
  uint32_t *places;      // [count]: kept rows below each; then its entry
  uint32_t *new_before;  // [count + 1]: new rows below each, and all
  void *room;  // of find_new_rows, room_bytes; null: room_bytes is set, and nothing else done
  uint64_t room_bytes;
  // Of add_kept.
  shardrec_cuda_kept_rows merged;  // the kept rows and the new ones
  float *new_gradients;            // of the new rows
  int32_t vectors;    // are all rows of gradients multiples of 16 bytes, and lie at such?
  int32_t lane_bits;  // 2^lane_bits threads, at most 32, add a row together
} shardrec_cuda_kept_addition;

// Gradients of the weights of ids.

// compute::WeightProducts.
typedef struct shardrec_cuda_weight_products {
  const void *table;
  int64_t stride;  // elements from row to row
  int64_t width;   // of gradients
  const void *ids;
  int32_t ids_are_64;
  int32_t reserved;  // 0
  int64_t id_count;
  const uint32_t *first_id;  // [bags + 1]: ids before each bag that is not empty, and all
  int64_t bags;
  const shardrec_cuda_column_range *ranges;
  int64_t range_count;
  const float *gradients;  // [bags, width]
  float *out;              // [id_count, range_count]
} shardrec_cuda_weight_products;

// Ids that a block of threads multiplies.
#define SHARDREC_CUDA_PRODUCT_IDS 256

// compute::ProductRows, and compute::ProductTerm.
typedef struct shardrec_cuda_product_rows {
  const float *rows;
  int64_t ranges;
  shardrec_cuda_presence presence;  // of the ids that the part got
} shardrec_cuda_product_rows;
typedef struct shardrec_cuda_product_term {
  int32_t part;
  int32_t range;
} shardrec_cuda_product_term;

// compute::WeightGradients.
typedef struct shardrec_cuda_weight_gradients {
  int64_t ids;
  const int32_t *intervals;  // null: all 0
  const shardrec_cuda_product_rows *parts;
  int64_t part_count;
  const shardrec_cuda_product_term *terms;
  const int32_t *first_term;
  const uint8_t *got;  // [intervals, parts]: did the part get the ids of the interval?
  uint64_t *bits;      // room for the bits of the parts' presence: [parts, words]
  float *out;
} shardrec_cuda_weight_gradients;

#ifdef __cplusplus
}
#endif

// The operations, each with what it takes behind its stream; and the functions that load their kernels.
// - pack_output_gradients: element: of the gradients. vectors: are addresses, strides, and the columns of all
//   maps multiples of 16 bytes? first_block: [count + 1], SHARDREC_CUDA_GRADIENT_SLICES blocks for each chunk
//   of items.
// - take_products: element: of the tables. vectors: are addresses, strides, ranges and widths of all rows
//   multiples of 16 bytes? first_block: [count + 1], the blocks of the jobs before each; blocks: of all.
// - mark_product_parts: Writes bits. first_word: [count + 1], the words of 64 ids of the features before
//   each.
// - sum_products: first_block: [count + 1], a block for each kThreads ids.
#define SHARDREC_CUDA_GRADIENTS_OPERATIONS(OPERATION)                                             \
  OPERATION(pack_output_gradients, int32_t element, int32_t vectors,                              \
            const shardrec_cuda_gradients *jobs, const int64_t *first_block, int32_t count,       \
            int64_t blocks)                                                                       \
  OPERATION(number_occurrences, const shardrec_cuda_single_occurrences *job)                      \
  OPERATION(find_new_rows, shardrec_cuda_kept_addition *job)                                      \
  OPERATION(add_kept, const shardrec_cuda_kept_addition *job)                                     \
  OPERATION(take_products, int32_t element, int32_t vectors,                                      \
            const shardrec_cuda_weight_products *jobs, const int64_t *first_block, int32_t count, \
            int64_t blocks)                                                                       \
  OPERATION(mark_product_parts, const shardrec_cuda_weight_gradients *jobs,                       \
            const int64_t *first_word, int32_t count, int64_t words)                              \
  OPERATION(sum_products, const shardrec_cuda_weight_gradients *jobs, const int64_t *first_block, \
            int32_t count, int64_t blocks)
#define SHARDREC_CUDA_GRADIENTS_LOADERS(LOADER) \
  LOADER(load_gradient_packing)                 \
  LOADER(load_gradient_rows) LOADER(load_kept_gradients) LOADER(load_weight_products)
