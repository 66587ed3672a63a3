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
  int32_t lanes;  // threads that add a row together
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
