// Sums of rows of several blocks, and rows put in the order of ids (cuda_plugin.h).
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/elements.h"
#include "compute/cuda/jobs/presence.h"

#ifdef __cplusplus
extern "C" {
#endif

// Rows that are there for some items.
typedef struct shardrec_cuda_addend {
  shardrec_cuda_presence presence;
  const float *rows;
  int64_t stride;       // between rows
  int32_t begins_node;  // is it the first one of its node?
  int32_t reserved;     // 0
} shardrec_cuda_addend;

// compute::PooledOutput, the addends of all nodes in one list; or compute::NodeSum, of one node. For each
// item: the sum over nodes of the sums over their addends that have a row of it. An item that none has a
// row of is left alone, unless its length is 0: then its output is 0.
typedef struct shardrec_cuda_row_sum {
  const shardrec_cuda_addend *addends;
  int64_t addend_count;
  int64_t items;
  const uint32_t *lengths;        // [items]; null: nothing is divided
  const uint32_t *sample_starts;  // as compute::BagSamples
  const uint32_t *samples;
  // Where not null: out has rows of the items that are present here only.
  shardrec_cuda_presence out_rows;
  int64_t cols;
  void *out;
  int64_t out_stride;  // elements
  int32_t out_element;
  int32_t mean;
  int32_t lanes;     // threads that add a row together
  int32_t reserved;  // 0
} shardrec_cuda_row_sum;

// compute::SentRows of a sequence.
typedef struct shardrec_cuda_sequence_rows {
  const uint32_t *chunk_rows;
  const unsigned char *codes;  // null: a row per id
  int64_t code_bytes;
  const float *rows;
  int64_t stride;
} shardrec_cuda_sequence_rows;

// compute::SequenceOutput.
typedef struct shardrec_cuda_sequence {
  const shardrec_cuda_sequence_rows *addends;
  int64_t addend_count;
  int64_t ids;
  const int32_t *intervals;
  const int32_t *addend_of;
  uint32_t *next_rows;   // room for a number per chunk and addend
  const float **source;  // room for the row of each id
  int64_t cols;
  void *out;
  int64_t out_stride;  // elements
  int32_t out_element;
  int32_t lanes;
} shardrec_cuda_sequence;

// Items that a group of lanes works on at once. A block of threads has kThreads / lanes groups.
#define SHARDREC_CUDA_SUMS_AT_ONCE 2
#define SHARDREC_CUDA_COPIES_AT_ONCE 4

#ifdef __cplusplus
}
#endif

// The operations, each with what it takes behind its stream; and the functions that load their kernels.
// - mark_bag_bits: first_word: [count + 1], the words of the blocks before each; words: of all.
// - index_held_bags: first_chunk: [count + 1], the chunks of the lists before each; chunks: of all.
// - add_chunk_sums: chunk_sums: of each list from the rows of each chunk to those before it; rows: [count],
//   the sums.
// - add_up_rows: vectors: are addresses, strides and widths of all rows multiples of 16 bytes, and, of
//   outputs of 16 bits, of 8? first_block: [count + 1], the blocks of the sums before each; blocks: of all.
// - find_sequence_rows: first_chunk: [count + 1], the chunks of ids of the sequences before each; chunks: of
//   all.
// - copy_sequence_rows: Of sequences the rows of which were found; the rest as add_up_rows.
#define SHARDREC_CUDA_ASSEMBLY_OPERATIONS(OPERATION)                                            \
  OPERATION(mark_bag_bits, const shardrec_cuda_bag_bits *blocks, const int64_t *first_word,     \
            int32_t count, int64_t words)                                                       \
  OPERATION(index_held_bags, const shardrec_cuda_held_bags *lists, const int64_t *first_chunk,  \
            int32_t count, int64_t chunks)                                                      \
  OPERATION(add_chunk_sums, const shardrec_cuda_held_bags *lists, int32_t count, int64_t *rows) \
  OPERATION(add_up_rows, int32_t vectors, const shardrec_cuda_row_sum *jobs,                    \
            const int64_t *first_block, int32_t count, int64_t blocks)                          \
  OPERATION(find_sequence_rows, const shardrec_cuda_sequence *jobs, const int64_t *first_chunk, \
            int32_t count, int64_t chunks)                                                      \
  OPERATION(copy_sequence_rows, int32_t vectors, const shardrec_cuda_sequence *jobs,            \
            const int64_t *first_block, int32_t count, int64_t blocks)
#define SHARDREC_CUDA_ASSEMBLY_LOADERS(LOADER) \
  LOADER(load_held_bags) LOADER(load_assembly) LOADER(load_node_sums)
