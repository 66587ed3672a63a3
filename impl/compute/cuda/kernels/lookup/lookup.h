// Outputs looked up in rows of tables: sums of bags, and rows of sequences (compute::BagOutputs).
//
// A block of threads takes some neighbouring items of one lookup. Its threads are cut into groups of
// the lookup's lanes, each of which takes kBags of the items and walks their ids from end to end, some
// rows on their way at once, whatever the lengths of the bags: a lane has some columns of them, so that
// each sum is one thread's, in the order of the ids.
#pragma once

#include "compute/cuda/kernels/columns.h"

namespace shardrec::compute::cuda {

inline constexpr int kBags = SHARDREC_CUDA_LOOKUP_ITEMS / kThreads;  // of a group
// Rows that a group has on their way: of vectors fewer where outputs are more than stored, which takes
// registers.
template <class Row, bool kPlain>
inline constexpr uint32_t kRowsAhead = kPlain || sizeof(typename Row::Raw) < 16 ? 8 : 4;

// The first id of each item of a block of threads, and the end of its last one. A feature has fewer
// than 2^32 ids.
struct ItemOffsets {
  static_assert(SHARDREC_CUDA_CHUNK == 2 * kThreads);
  static_assert(SHARDREC_CUDA_LOOKUP_ITEMS / SHARDREC_CUDA_LEAST_LANES <= SHARDREC_CUDA_CHUNK);

  shardrec_cuda_lookup job;
  uint32_t at[SHARDREC_CUDA_CHUNK + 1];
  uint32_t warp_ids[kWarps];
};

// Fills in the offsets of items [first, first + items). All threads of the block call it, and read none
// before they have met at a barrier.
SHARDREC_DEVICE void read_offsets(const shardrec_cuda_lookup& job, int64_t first, int items,
                                  ItemOffsets& offsets) {
  const int thread = static_cast<int>(threadIdx.x);
  if (job.first_id != nullptr) {
    for (int i = thread; i <= items; i += kThreads) offsets.at[i] = global(job.first_id)[first + i];
    return;
  }
  const int64_t chunk = first / SHARDREC_CUDA_CHUNK;
  const int skipped = static_cast<int>(first % SHARDREC_CUDA_CHUNK);  // items of the chunk
  const uint32_t begin = job.chunk_ids != nullptr ? global(job.chunk_ids)[chunk]
                                                  : static_cast<uint32_t>(first - skipped);
  if (job.lengths == nullptr) {
    for (int i = thread; i <= items; i += kThreads) {
      offsets.at[i] = begin + static_cast<uint32_t>(skipped + i);
    }
    return;
  }
  // Two items of the chunk for each thread.
  const int64_t item = chunk * SHARDREC_CUDA_CHUNK + 2 * thread;
  const uint32_t length0 = item < job.items ? global(job.lengths)[item] : 0;
  const uint32_t length1 = item + 1 < job.items ? global(job.lengths)[item + 1] : 0;
  const uint32_t ids = sum_of_lanes_up_to_this(length0 + length1);
  if (lane_index() == kWarp - 1) offsets.warp_ids[warp_index()] = ids;
  __syncthreads();
  uint32_t end = begin + ids;
  for (int warp = 0; warp < warp_index(); ++warp) end += offsets.warp_ids[warp];
  const auto put = [&](int i, uint32_t offset) {
    if (i >= 0 && i <= items) offsets.at[i] = offset;
  };
  if (thread == 0) put(-skipped, begin);
  put(2 * thread + 1 - skipped, end - length1);
  put(2 * thread + 2 - skipped, end);
}

// The rows of the next ids, `left` of which there are: where they end, the last one again.
template <class Row, uint32_t kAhead, class Id>
SHARDREC_DEVICE void load_rows(const unsigned char* columns, size_t row_bytes, const Id* ids,
                               uint32_t left, typename Row::Raw (&raw)[kAhead]) {
  Id id[kAhead];
#pragma unroll
  for (uint32_t k = 0; k < kAhead; ++k) id[k] = ids[k < left ? k : left - 1];
#pragma unroll
  for (uint32_t k = 0; k < kAhead; ++k) {
    raw[k] = *reinterpret_cast<const typename Row::Raw*>(columns +
                                                         static_cast<size_t>(id[k]) * row_bytes);
  }
}

// The sum of a bag of so many ids, in the columns from `column` on, as it is put out.
template <class Row, bool kPlain>
SHARDREC_DEVICE void put_out(const shardrec_cuda_lookup& job, int64_t item, int64_t column,
                             uint32_t ids, float (&sum)[Row::kColumns]) {
  const int64_t at = item * job.out_stride + column;
  if constexpr (kPlain) {
    store_columns(job.out, SHARDREC_CUDA_FLOAT32, at, sum);
  } else {
    if (job.mean != 0 && ids != 0) {
#pragma unroll
      for (int c = 0; c < Row::kColumns; ++c) sum[c] = __fdiv_rn(sum[c], static_cast<float>(ids));
    }
    if (Row::kColumns != 1 && job.out_vectors != 0) {
      store_columns(job.out, job.out_element, at, sum);
    } else {
#pragma unroll
      for (int c = 0; c < Row::kColumns; ++c) {
        store_number(global(job.out), job.out_element, at + c, sum[c]);
      }
    }
  }
#pragma unroll
  for (int c = 0; c < Row::kColumns; ++c) sum[c] = 0;
}

// Bags [bag, end_bag) of the block of threads, the first item of which is number `first`, in the columns
// of one lane.
template <class Row, bool kPlain>
SHARDREC_DEVICE void look_up_bags(const shardrec_cuda_lookup& job, const ItemOffsets& offsets,
                                  int64_t first, int bag, int end_bag, int64_t column) {
  constexpr uint32_t kAhead = kRowsAhead<Row, kPlain>;
  const auto* const columns = static_cast<const unsigned char*>(global(job.table)) +
                              static_cast<size_t>(column) * Row::kElementBytes;
  const size_t row_bytes = static_cast<size_t>(job.stride) * Row::kElementBytes;
  float sum[Row::kColumns] = {};
  uint32_t i = offsets.at[bag];
  uint32_t left = offsets.at[end_bag] - i;  // ids of the bags
  uint32_t left_of_bag = offsets.at[bag + 1] - i;
  const auto finish_bag = [&] {
    put_out<Row, kPlain>(job, first + bag, column, offsets.at[bag + 1] - offsets.at[bag], sum);
    ++bag;
    if (bag < end_bag) left_of_bag = offsets.at[bag + 1] - offsets.at[bag];
  };
  while (left != 0) {
    typename Row::Raw raw[kAhead];
    if (job.ids_are_64 != 0) {
      load_rows<Row, kAhead>(columns, row_bytes, static_cast<const int64_t*>(global(job.ids)) + i,
                             left, raw);
    } else {
      load_rows<Row, kAhead>(columns, row_bytes, static_cast<const int32_t*>(global(job.ids)) + i,
                             left, raw);
    }
#pragma unroll
    for (uint32_t k = 0; k < kAhead; ++k) {
      if (k == left) break;
      while (left_of_bag == 0) finish_bag();
      const float weight = job.weights == nullptr ? 1.0F : global(job.weights)[i + k];
      float x[Row::kColumns];
      Row::widen(raw[k], x);
#pragma unroll
      for (int c = 0; c < Row::kColumns; ++c) sum[c] = __fmaf_rn(weight, x[c], sum[c]);
      --left_of_bag;
    }
    const uint32_t done = left < kAhead ? left : kAhead;
    i += done;
    left -= done;
  }
  while (bag < end_bag) finish_bag();
}

template <class Row, bool kPlain>
SHARDREC_KERNEL(3)
look_up(const shardrec_cuda_lookup* lookups, const int64_t* first_block, int32_t count) {
  const int32_t number = last_start(first_block, count, blockIdx.x);
  auto& offsets = shared<ItemOffsets>();
  if (threadIdx.x == 0) offsets.job = lookups[number];
  __syncthreads();
  const shardrec_cuda_lookup& job = offsets.job;
  if (job.good != nullptr && *global(job.good) == 0) return;
  const int most = SHARDREC_CUDA_LOOKUP_ITEMS / job.lanes;
  const int64_t first = (blockIdx.x - first_block[number]) * most;
  const int items = job.items - first < most ? static_cast<int>(job.items - first) : most;
  read_offsets(job, first, items, offsets);
  __syncthreads();
  const auto thread = static_cast<int>(threadIdx.x);
  const int bag = thread / job.lanes * kBags;
  if (bag >= items) return;
  const int end_bag = items - bag < kBags ? items : bag + kBags;
  const int64_t step = job.lanes * Row::kColumns;
  for (int64_t column = thread % job.lanes * Row::kColumns; column < job.width; column += step) {
    look_up_bags<Row, kPlain>(job, offsets, first, bag, end_bag, column);
  }
}

}  // namespace shardrec::compute::cuda
