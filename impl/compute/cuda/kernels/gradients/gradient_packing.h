// Gradients of outputs, packed for the owners of rows (compute::BagGradients, compute::SequenceGradients).
// A block of threads lists the items of a chunk that are packed, and packs a slice of them: groups of
// lanes take some of its rows at once.
#pragma once

#include "compute/cuda/jobs/cuda_plugin.h"
#include "compute/cuda/kernels/columns.h"

namespace shardrec::compute::cuda {

// Rows that a group has on their way.
inline constexpr int kGradientsAtOnce = 4;

// The items of a chunk that are packed, in their order, counted from its first one.
struct PackedItems {
  uint16_t item[SHARDREC_CUDA_CHUNK];
  uint32_t warp_items[SHARDREC_CUDA_CHUNK / kWarp];
};

// Is an item of a sequence, or of bags of dense lengths, packed?
SHARDREC_DEVICE bool is_packed(const shardrec_cuda_gradients& job, int64_t item) {
  if (item >= job.items) return false;
  if (job.of_sequence == 0) return global(job.bags.dense_lengths)[item] != 0;
  const int32_t interval = job.intervals == nullptr ? 0 : global(job.intervals)[item];
  return interval >= job.first_interval && interval < job.end_interval;
}

// Lists the items of a chunk, `count` of which are packed. All threads of the block call it, and meet at
// a barrier before they read the list.
SHARDREC_DEVICE void list_items(const shardrec_cuda_gradients& job, int64_t chunk, int count,
                                PackedItems& items) {
  const int64_t first = chunk * SHARDREC_CUDA_CHUNK;
  const auto thread = static_cast<int>(threadIdx.x);
  if (job.bags.sparse_lengths != nullptr) {
    const shardrec_cuda_sparse_length* const lengths =
        global(job.bags.sparse_lengths) + global(job.bags.chunk_rows)[chunk];
    for (int i = thread; i < count; i += kThreads) {
      items.item[i] = static_cast<uint16_t>(lengths[i].sample - first);
    }
    return;
  }
  static_assert(SHARDREC_CUDA_CHUNK == 2 * kThreads);
  const unsigned below = __ballot_sync(kAllLanes, is_packed(job, first + thread));
  const unsigned above = __ballot_sync(kAllLanes, is_packed(job, first + kThreads + thread));
  if (lane_index() == 0) {
    items.warp_items[warp_index()] = static_cast<uint32_t>(__popc(below));
    items.warp_items[kWarps + warp_index()] = static_cast<uint32_t>(__popc(above));
  }
  __syncthreads();
  const auto put = [&](unsigned packed, int warp, int item) {
    if ((packed >> lane_index() & 1) == 0) return;
    auto at = static_cast<uint32_t>(__popc(packed & ((1U << lane_index()) - 1)));
    for (int before = 0; before < warp; ++before) at += items.warp_items[before];
    items.item[at] = static_cast<uint16_t>(item);
  };
  put(below, warp_index(), thread);
  put(above, kWarps + warp_index(), kThreads + thread);
}

// x = the sum of the gradients of the samples of a bag, in their order.
template <class Row>
SHARDREC_DEVICE void add_samples(const shardrec_cuda_gradients& job, int64_t bag, int64_t column,
                                 float (&x)[Row::kColumns]) {
  const uint32_t begin = global(job.sample_starts)[bag];
  const uint32_t end = global(job.sample_starts)[bag + 1];
#pragma unroll
  for (int c = 0; c < Row::kColumns; ++c) x[c] = 0;
  for (uint32_t s = begin; s < end; ++s) {
    float of_sample[Row::kColumns];
    Row::widen(raw_at<Row>(job.gradient, job.stride, global(job.samples)[s], column), of_sample);
#pragma unroll
    for (int c = 0; c < Row::kColumns; ++c) {
      x[c] = s == begin ? of_sample[c] : __fadd_rn(x[c], of_sample[c]);
    }
  }
}

// Writes some columns of row `row` of the block: `at` is the place of the first of them in a row.
template <int kColumns>
SHARDREC_DEVICE void put_gradient(const shardrec_cuda_gradients& job, int64_t row, int64_t at,
                                  float length, float (&x)[kColumns]) {
  const auto divide = [&](float(&y)[kColumns], float by) {
    if (by == 1) return;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) y[c] = __fdiv_rn(y[c], by);
  };
  if (job.unscaled != nullptr) {
    float y[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; ++c) y[c] = x[c];
    divide(y, length);
    store_columns(job.unscaled, SHARDREC_CUDA_FLOAT32, row * job.width + at, y);
  }
  divide(x, job.divisor);
  if (job.max_gradient != 0) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) x[c] = math::clamped(x[c], job.max_gradient);
  }
  divide(x, length);
  store_columns(job.out, SHARDREC_CUDA_FLOAT32, row * job.width + at, x);
}

// Packs the columns of one map of some rows of a chunk: `row`, row + step, ... below end.
template <class Row>
SHARDREC_DEVICE void pack_rows(const shardrec_cuda_gradients& job, const PackedItems& items,
                               int64_t chunk, int row, int step, int end, int64_t column,
                               int64_t at) {
  constexpr int kAtOnce = kGradientsAtOnce;
  float x[kAtOnce][Row::kColumns];
  const auto item_of = [&](int k) {
    return chunk * SHARDREC_CUDA_CHUNK + items.item[row + k * step];
  };
  if (job.sample_starts == nullptr) {
    typename Row::Raw raw[kAtOnce] = {};
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (row + k * step < end) raw[k] = raw_at<Row>(job.gradient, job.stride, item_of(k), column);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) Row::widen(raw[k], x[k]);
  } else {
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (row + k * step < end) add_samples<Row>(job, item_of(k), column, x[k]);
    }
  }
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) {
    if (row + k * step >= end) break;
    const float length =
        job.lengths == nullptr ? 1 : static_cast<float>(global(job.lengths)[item_of(k)]);
    put_gradient(job, global(job.bags.chunk_rows)[chunk] + row + k * step, at, length, x[k]);
  }
}

// first_block: [count + 1], the blocks of threads of the blocks before each.
template <class Row>
SHARDREC_KERNEL(2)
pack_gradients(const shardrec_cuda_gradients* jobs, const int64_t* first_block, int32_t count) {
  constexpr int kSlices = SHARDREC_CUDA_GRADIENT_SLICES;
  const int32_t number = last_start(first_block, count, blockIdx.x);
  const shardrec_cuda_gradients& job = *global(&jobs[number]);
  const int64_t chunk = (blockIdx.x - first_block[number]) / kSlices;
  const auto slice = static_cast<int>((blockIdx.x - first_block[number]) % kSlices);
  const auto rows =
      static_cast<int>(global(job.bags.chunk_rows)[chunk + 1] - global(job.bags.chunk_rows)[chunk]);
  if (rows == 0) return;
  auto& items = shared<PackedItems>();
  list_items(job, chunk, rows, items);
  __syncthreads();
  const auto thread = static_cast<int>(threadIdx.x);
  const int groups = kThreads / job.lanes;
  const int end = rows * (slice + 1) / kSlices;
  const int64_t step = job.lanes * Row::kColumns;
  for (int row = rows * slice / kSlices + thread / job.lanes; row < end;
       row += groups * kGradientsAtOnce) {
    for (int64_t m = 0; m < job.column_count; ++m) {
      const shardrec_cuda_column_map map = global(job.columns)[m];
      for (int64_t c = thread % job.lanes * Row::kColumns; c < map.count; c += step) {
        pack_rows<Row>(job, items, chunk, row, groups, end, map.column + c, map.offset + c);
      }
    }
  }
}

}  // namespace shardrec::compute::cuda
