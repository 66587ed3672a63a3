// Ids on their way to the owners of their rows (cuda_plugin.h): the batch of the caller, checked; its ids, counted
// and written into messages; what arrives at the owner.
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/bags.h"
#include "compute/cuda/jobs/scans.h"
#include "compute/cuda/jobs/tiles.h"

#ifdef __cplusplus
extern "C" {
#endif

// The caller's batch, checked: lengths of bags, and which samples each bag is for.

// compute::BagLengths, the integers from its first one on. What the caller gives is named by bytes from a place that
// the job names: lists of batches that lie elsewhere are equal, and are not sent again.
typedef struct shardrec_cuda_bag_lengths {
  int64_t given_at;  // [bags], of offsets one more
  int32_t given_64;
  int32_t are_offsets;
  int64_t bags;
  int64_t most;
  uint32_t *out;  // [bags]
} shardrec_cuda_bag_lengths;

// What was found in a list. Zeros before the operation.
typedef struct shardrec_cuda_checked_list {
  uint64_t wrong;  // ~i of the first item i that is wrong; 0: none is
  uint64_t sum;    // of the items, those aside that are wrong; of offsets, the last one
} shardrec_cuda_checked_list;

// tiles: of the bags of each feature, one at least.
typedef struct shardrec_cuda_length_reading {
  const shardrec_cuda_bag_lengths *features;
  const void *given;
  shardrec_cuda_tiles tiles;
  shardrec_cuda_checked_list *checked;  // by feature
} shardrec_cuda_length_reading;

// compute::SamplesByBag, the numbers of bags from its first one on. Its samples are numbers
// [first_sample, first_sample + count) among those of all features of the call, its bags are those from
// first_bag on.
typedef struct shardrec_cuda_samples_by_bag {
  const void *bag_of;  // [count]
  int32_t bag_of_64;
  int32_t reserved;  // 0
  int64_t count;
  int64_t bags;
  int64_t first_sample;
  uint64_t first_bag;
  uint32_t *starts;   // [bags + 1]
  uint32_t *samples;  // [count]
} shardrec_cuda_samples_by_bag;

typedef struct shardrec_cuda_sample_sorting {
  const shardrec_cuda_samples_by_bag *features;
  shardrec_cuda_tiles sample_tiles;     // of the samples of each feature
  shardrec_cuda_tiles list_tiles;       // of the samples or the starts, whichever are more
  shardrec_cuda_checked_list *checked;  // by feature; without sums
  int64_t samples;                      // of all features
  int32_t key_bits;                     // that all bags are told apart by
  int32_t reserved;                     // 0
  uint64_t *keys, *sorted_keys;         // [samples]
  uint32_t *values, *sorted_values;     // [samples]
  void *room;  // room_bytes; null: room_bytes is set, and nothing else is done
  uint64_t room_bytes;
} shardrec_cuda_sample_sorting;

// Blocks of ids as they arrive at the owner of their rows: lengths of bags that are
// checked, and ids that travelled as codes.

// What the lengths of a block add up to. Zeros before the operation.
typedef struct shardrec_cuda_bag_totals {
  uint64_t ids;
  uint64_t bags;  // not empty; of dense lengths
  uint64_t
      unordered;  // sparse lengths that are 0, beyond the samples, or not behind the one before
} shardrec_cuda_bag_totals;

// tiles: of the lengths of each block.
typedef struct shardrec_cuda_bag_check {
  const shardrec_cuda_bags *blocks;
  shardrec_cuda_tiles tiles;
  shardrec_cuda_bag_totals *totals;  // by block
} shardrec_cuda_bag_check;

// compute::CodedIds.
typedef struct shardrec_cuda_coded_ids {
  const void *codes;
  int32_t code_bytes;  // 1, 2 or 4
  int32_t ids_are_64;
  int64_t count;
  const void *unique_ids;
  int64_t unique;
  void *out;
} shardrec_cuda_coded_ids;

// tiles: of the codes of each block.
typedef struct shardrec_cuda_id_expansion {
  const shardrec_cuda_coded_ids *blocks;
  shardrec_cuda_tiles tiles;
  uint64_t *wrong;  // by block, zeros before: ~i of the first code i that is wrong; 0: none is
} shardrec_cuda_id_expansion;

// Blocks of ids whose different ones travel once where that takes fewer bytes: compute::DeduplicatedBlocks.
// They are read in a copy of their message.

#define SHARDREC_CUDA_EMPTY_SLOT (~0U)

// The ids of a block. Places are among them: that of an id is where it comes first.
typedef struct shardrec_cuda_repeated_ids {
  const void *ids;  // [count], not negative
  int32_t ids_are_64;
  // A hash table of last_slot + 1 slots, a power of two; all empty before. A slot has the place of an id that
  // fell there; the shift leaves as many bits of a hash of 64 as number a slot.
  int32_t shift;
  uint32_t last_slot;
  int32_t reserved;  // 0
  uint32_t *slots;
  int64_t count;
  uint32_t *places;         // [count]
  uint32_t *firsts_before;  // [count]: ids at their places before each
} shardrec_cuda_repeated_ids;

typedef struct shardrec_cuda_repeat_search {
  const shardrec_cuda_repeated_ids *blocks;
  shardrec_cuda_tiles tiles;  // of the ids of each block
  shardrec_cuda_scan scan;
  uint64_t *unique;  // by block, zeros before: how many different ids it has
} shardrec_cuda_repeat_search;

// The different ids of a block, and codes for all, written into its message.
typedef struct shardrec_cuda_id_dictionary {
  const void *ids;  // as those of the search
  int32_t ids_are_64;
  int32_t code_bytes;  // 1, 2 or 4
  int64_t count;
  const uint32_t *places;
  const uint32_t *firsts_before;
  int64_t unique;
  void *unique_ids;  // [unique], then zeros up to the codes
  void *codes;       // [count], then zeros up to a multiple of 8 bytes
} shardrec_cuda_id_dictionary;

// Neighbouring sections that stay as they are.
typedef struct shardrec_cuda_moved_words {
  const uint64_t *from;
  uint64_t *to;
  int64_t count;
} shardrec_cuda_moved_words;

typedef struct shardrec_cuda_dictionary_writing {
  const shardrec_cuda_id_dictionary *dictionaries;
  shardrec_cuda_tiles id_tiles;  // of the ids of each dictionary
  const shardrec_cuda_moved_words *moved;
  shardrec_cuda_tiles word_tiles;  // of the words of each list
} shardrec_cuda_dictionary_writing;

// Ids of a batch on their way to the owners of their rows.

// A warp walks so many neighbouring bags of a feature, a strip, the last one those that are left. A chunk
// begins with a strip.
#define SHARDREC_CUDA_STRIP 64
// Features of more blocks keep the places of a warp in memory that is not shared.
#define SHARDREC_CUDA_MOST_SHARED_PLACES 128

// What becomes of ids outside their table: shardrec_out_of_range.
enum { SHARDREC_CUDA_REFUSE = 0, SHARDREC_CUDA_DROP = 1, SHARDREC_CUDA_CLAMP = 2 };

// compute::BlockSections, and the first row of the block's range. chunk_rows null: another block writes the same
// chunks.
typedef struct shardrec_cuda_written_block {
  int64_t row;
  uint32_t *dense_lengths;
  shardrec_cuda_sparse_length *sparse_lengths;
  void *ids;
  float *weights;
  uint32_t *chunk_rows;
  uint32_t *chunk_ids;
} shardrec_cuda_written_block;

// What a warp has counted, or written, of a block.
typedef struct shardrec_cuda_block_place {
  uint32_t ids;
  uint32_t bags;         // not empty
  uint32_t last_sample;  // of the last bag
} shardrec_cuda_block_place;

// compute::RoutedIds, the ids and weights from the feature's first one on. Sums are of ids, and, above
// 2^32, of bags that are not empty. One over several features may wrap: its differences do not.
typedef struct shardrec_cuda_routed_ids {
  int64_t ids_at;           // [count], in bytes from the job's
  int64_t weights_at;       // likewise
  const uint32_t *lengths;  // [bags]
  int64_t count;
  int64_t bags;
  int64_t rows;
  int32_t ids_are_64;
  int32_t writes_64;
  int32_t policy;
  int32_t sequence;
  uint32_t *kept_lengths;
  int32_t *interval_of;
  // compute::RowIntervals. No intervals: every block holds all ids.
  int32_t intervals;
  int32_t columns;
  const int64_t *cuts;
  int64_t even;
  uint64_t reciprocal;
  // [columns][intervals]: numbers of blocks of the feature that the ids of an interval go to, or -1. No
  // block is in two columns.
  const int32_t *interval_blocks;
  int32_t block_count;
  int32_t reserved;                           // 0
  const shardrec_cuda_written_block *blocks;  // [block_count]; only read where they are written
  int64_t strips;                             // at least one
  uint64_t *strip_sums;                       // [strips + 1]: of the strips before each
  uint64_t *block_sums;  // [block_count][strips]: of intervals, of the strips before each
  shardrec_cuda_block_place *places;  // [strips][block_count]; null: in shared memory
} shardrec_cuda_routed_ids;

// The ids and the bags of a block that holds a feature whole are what lies between two sums.
typedef struct shardrec_cuda_block_total {
  const uint64_t *begin;  // null: it holds none
  const uint64_t *end;
} shardrec_cuda_block_total;

// A block that holds some intervals of a feature: what the feature's strips have counted for it.
typedef struct shardrec_cuda_strips_of_block {
  uint64_t *sums;  // [strips]
  int64_t strips;
  int64_t number;  // of the block
} shardrec_cuda_strips_of_block;

typedef struct shardrec_cuda_id_routing {
  const shardrec_cuda_routed_ids *features;
  const void *ids;
  const float *weights;  // null: there are none
  int32_t feature_count;
  int32_t cut_features;        // those with intervals
  const int64_t *first_strip;  // [feature_count + 1]: strips of the features before
  int64_t strips;              // of all features
  // Of the ids of each feature without intervals; behind a reading of lengths, of all ids in one list.
  shardrec_cuda_tiles tiles;
  uint64_t *strip_sums;  // [strips + 1]: of all features
  // Counted: by feature, zeros before, with the ids out of range as a sum; by block, zeros before.
  shardrec_cuda_checked_list *checked;
  const shardrec_cuda_block_total *totals;  // by block
  uint64_t *counts;
  int64_t block_count;
  shardrec_cuda_tiles bag_tiles;  // of the bags of each feature, one at least
  const shardrec_cuda_strips_of_block *strips_of_blocks;
  shardrec_cuda_tiles sum_tiles;  // of the strips of each of these blocks
  shardrec_cuda_scan scan;        // of the tiles of bags
  shardrec_cuda_scan sum_scan;    // of the tiles of strips
  // Only where lengths are read on the way, and the host does not know them yet: ids are those of the whole batch in
  // each feature, and where its own begin follows from the lengths. Nothing is counted unless these are good and
  // add up to all_ids. Null: lengths are there, and ids are the feature's.
  const shardrec_cuda_bag_lengths *given;  // by feature; all offsets, or none
  const void *given_lengths;
  shardrec_cuda_checked_list *lengths;  // by feature, zeros before
  int64_t all_ids;
  uint32_t *lengths_are_good;
} shardrec_cuda_id_routing;

// A batch all ids of which stay on this rank: compute::LocalBatch.

// compute::LocalChunks.
typedef struct shardrec_cuda_local_chunks {
  uint32_t *rows;
  uint32_t *ids;
  uint32_t *batch_ids;
} shardrec_cuda_local_chunks;

// What was wrong in a feature: read before the caller may take its lists back.
typedef struct shardrec_cuda_wrong_values {
  int64_t id;
  int64_t length;  // or offset
  int64_t before;  // the offset before it
} shardrec_cuda_wrong_values;

// Beside the routing of the features, whose lengths are read on the way: where ids are copied to while they are
// checked, a refused one as row 0.
typedef struct shardrec_cuda_local_ids {
  void *ids;
  float *weights;                            // null: not wanted
  const shardrec_cuda_local_chunks *chunks;  // by feature
  shardrec_cuda_wrong_values *wrong;         // by feature
  uint32_t *ended;                           // blocks of threads; 0 before
  uint32_t *good;                            // written last: 1 where nothing is wrong, else 0
} shardrec_cuda_local_ids;

#ifdef __cplusplus
}
#endif

// The operations, each with what it takes behind its stream; and the functions that load their kernels.
// - write_ids: with the sums that count_ids has left.
// - copy_local_ids: where no feature has intervals. It finds what count_ids finds.
// - write_dictionaries: with what find_repeats has left.
#define SHARDREC_CUDA_ROUTING_OPERATIONS(OPERATION)                              \
  OPERATION(read_lengths, const shardrec_cuda_length_reading *reading)           \
  OPERATION(sort_samples, shardrec_cuda_sample_sorting *sorting)                 \
  OPERATION(count_ids, const shardrec_cuda_id_routing *routing)                  \
  OPERATION(write_ids, const shardrec_cuda_id_routing *routing)                  \
  OPERATION(copy_local_ids, const shardrec_cuda_id_routing *routing,             \
            const shardrec_cuda_local_ids *to)                                   \
  OPERATION(find_repeats, const shardrec_cuda_repeat_search *search)             \
  OPERATION(write_dictionaries, const shardrec_cuda_dictionary_writing *writing) \
  OPERATION(check_bags, const shardrec_cuda_bag_check *check)                    \
  OPERATION(expand_ids, const shardrec_cuda_id_expansion *expansion)
#define SHARDREC_CUDA_ROUTING_LOADERS(LOADER) \
  LOADER(load_batch) LOADER(load_routing) LOADER(load_deduplication) LOADER(load_received)
