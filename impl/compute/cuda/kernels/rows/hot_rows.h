// Rows that very many occurrences name: found when touched rows are opened, and summed by a block of
// threads each, for a slice of 32 columns at a time. The sums of their blocks (RowUpdate::blocks) are
// taken by a warp each, and added in order: the bits are those of one thread. Which rows get a place
// for their sum may differ from run to run where there are more than places; no bit depends on it.
#pragma once

#include "compute/cuda/kernels/rows/touched_rows.h"

namespace shardrec::compute::cuda {

// A thread for each row and for each gradient row of a shard.
SHARDREC_KERNEL(8) find_hot_rows(shardrec_cuda_row_opening job) {
  const int32_t shard = last_start(job.first_block, job.count, blockIdx.x);
  const shardrec_cuda_touched_rows& touched = job.shards[shard];
  const int64_t i = (blockIdx.x - job.first_block[shard]) * kThreads + threadIdx.x;
  if (i < rows_there(touched) &&
      global(touched.run)[i + 1] - global(touched.run)[i] > SHARDREC_CUDA_HOT_OCCURRENCES) {
    const unsigned at = atomicAdd(job.hot_count, 1U);
    const bool has_place = at < job.most_hot_rows;
    if (has_place) job.hot_rows[at] = {.shard = shard, .row = i};
    global(touched.hot_sum)[i] = has_place ? static_cast<int32_t>(at) : -1;
  }
  const bool unaligned =
      i < touched.bag_count && reinterpret_cast<uintptr_t>(global(touched.gradients)[i]) % 16 != 0;
  if (__any_sync(kAllLanes, unaligned) != 0 && lane_index() == 0) atomicOr(touched.unaligned, 1U);
}

// Occurrences in which the blocks of a row are looked for at once.
inline constexpr int kBallots = 8;
inline constexpr int kWindow = kThreads * kBallots;

struct HotShared {
  float sum[2][kWarps]
           [kWarp];        // of a block by each warp; the one is written while the other is read
  int32_t starts[kWarps];  // blocks that begin in a warp's part of the window
  int32_t start[kWindow];  // where they begin, from the window's begin on
};

// The sum of the block whose first occurrence is o, in one column. All lanes of the warp call it.
SHARDREC_DEVICE float sum_block(const shardrec_cuda_touched_rows& touched, int64_t o, int64_t end,
                                int64_t column) {
  constexpr int kAhead = 8;
  const uint32_t number = global(touched.blocks)[global(touched.bags)[o]];
  float sum = touched.block_start;
  for (bool ends = false; !ends; o += kWarp) {
    // An occurrence for each lane.
    const int64_t own = o + lane_index();
    Occurrence occurrence = read_occurrence(touched, own < end ? own : end - 1);
    const unsigned others = __ballot_sync(kAllLanes, own >= end || occurrence.block != number);
    ends = others != 0;
    const int count = ends ? __ffs(static_cast<int>(others)) - 1 : kWarp;
    for (int i = 0; i < count; i += kAhead) {
      float x[kAhead];
      float weight[kAhead];
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        const int from = i + k < count ? i + k : count - 1;
        const auto address =
            __shfl_sync(kAllLanes, reinterpret_cast<unsigned long long>(occurrence.gradient), from);
        weight[k] = __shfl_sync(kAllLanes, occurrence.weight, from);
        x[k] = global(reinterpret_cast<const float*>(address))[column];
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        if (i + k < count) {
          sum = math::add_gradient(weight[k], touched.gradient_scale, x[k], sum);
        }
      }
    }
  }
  return sum;
}

// Lists the occurrences of a window at which a block begins; returns how many. All threads call it.
SHARDREC_DEVICE int find_blocks(const shardrec_cuda_touched_rows& touched, int64_t window,
                                int64_t begin, int64_t end, HotShared& own) {
  const int first = warp_index() * kWarp * kBallots;
  unsigned begins[kBallots];
  int count = 0;
#pragma unroll
  for (int i = 0; i < kBallots; ++i) {
    const int64_t o = window + first + i * kWarp + lane_index();
    const bool starts =
        o < end && (o == begin || global(touched.blocks)[global(touched.bags)[o]] !=
                                      global(touched.blocks)[global(touched.bags)[o - 1]]);
    begins[i] = __ballot_sync(kAllLanes, starts);
    count += __popc(begins[i]);
  }
  if (lane_index() == 0) own.starts[warp_index()] = count;
  __syncthreads();
  int at = 0;
  int all = 0;
  for (int warp = 0; warp < kWarps; ++warp) {
    if (warp < warp_index()) at += own.starts[warp];
    all += own.starts[warp];
  }
  const unsigned below = (1U << lane_index()) - 1;
#pragma unroll
  for (int i = 0; i < kBallots; ++i) {
    if ((begins[i] >> lane_index() & 1U) != 0) {
      own.start[at + __popc(begins[i] & below)] = first + i * kWarp + lane_index();
    }
    at += __popc(begins[i]);
  }
  __syncthreads();
  return all;
}

// The gradient of touched row u in a slice of columns; all threads of the block call it.
SHARDREC_DEVICE void sum_hot_row(const shardrec_cuda_touched_rows& touched, int64_t u,
                                 int64_t first_column, float* out, HotShared& own) {
  const int64_t begin = global(touched.run)[u];
  const int64_t end = global(touched.run)[u + 1];
  const int64_t column = first_column + lane_index();
  // Lanes without a column read that of another.
  const int64_t read = column < touched.width ? column : first_column;
  float sum = 0;  // of warp 0
  bool first = true;
  int buffer = 0;
  for (int64_t window = begin; window < end; window += kWindow) {
    const int blocks = find_blocks(touched, window, begin, end, own);
    for (int block = 0; block < blocks; block += kWarps) {
      const int mine = block + warp_index();
      if (mine < blocks) {
        own.sum[buffer][warp_index()][lane_index()] =
            sum_block(touched, window + own.start[mine], end, read);
      }
      __syncthreads();
      if (warp_index() == 0) {
        const int left = blocks - block;
        for (int warp = 0; warp < kWarps && warp < left; ++warp) {
          const float next = own.sum[buffer][warp][lane_index()];
          sum = first ? next : math::op::add(sum, next);
          first = false;
        }
      }
      buffer = 1 - buffer;
    }
  }
  if (warp_index() == 0 && column < touched.width) global(out)[column] = sum;
}

// Blocks of threads take slices of rows one after the other.
SHARDREC_KERNEL(4) sum_hot_rows(shardrec_cuda_row_opening job) {
  auto& own = shared<HotShared>();
  const uint32_t found = *job.hot_count;
  const uint32_t rows = found < job.most_hot_rows ? found : job.most_hot_rows;
  const int64_t slices = (job.widest + kWarp - 1) / kWarp;
  for (int64_t i = blockIdx.x; i < rows * slices; i += gridDim.x) {
    const shardrec_cuda_hot_row& row = job.hot_rows[i / slices];
    const shardrec_cuda_touched_rows& touched = job.shards[row.shard];
    const int64_t column = i % slices * kWarp;
    if (column >= touched.width) continue;
    float* const out = touched.hot_sums + i / slices * touched.hot_stride;
    sum_hot_row(touched, row.row, column, out, own);
    __syncthreads();
  }
}

}  // namespace shardrec::compute::cuda
