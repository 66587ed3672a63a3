// What the kernels on touched rows share: which job a block of threads works on, and which rows of it.
#pragma once

#include "compute/cuda/kernels/rows/touched_rows.h"

namespace shardrec::compute::cuda {

// The job of a block of threads, in its shared memory, and the first touched row of the calling warp.
struct BlockJob {
  shardrec_cuda_row_job job;

  // All threads of the block call it, with lists as the kernels on jobs get them.
  SHARDREC_DEVICE int64_t read(const shardrec_cuda_row_job* jobs, const int64_t* first_block,
                               int32_t count) {
    static_assert(sizeof(shardrec_cuda_row_job) % sizeof(uint64_t) == 0);
    const int32_t number = last_start(first_block, count, blockIdx.x);
    const auto* const from = reinterpret_cast<const uint64_t*>(jobs + number);
    auto* const to = reinterpret_cast<uint64_t*>(&job);
    for (size_t i = threadIdx.x; i < sizeof job / sizeof(uint64_t); i += kThreads) to[i] = from[i];
    __syncthreads();
    return ((blockIdx.x - first_block[number]) * kWarps + warp_index()) * job.tile_rows;
  }

  // Rows that a warp has from `first` on; 0 where there are none.
  SHARDREC_DEVICE int rows_from(int64_t first) const {
    const int64_t left = rows_there(job.touched) - first;
    if (left <= 0) return 0;
    return left < job.tile_rows ? static_cast<int>(left) : job.tile_rows;
  }
};

// Where the calling lane stands in its warp: `lanes` of them have a row together.
struct LaneGroup {
  int lanes;
  int lane;    // in the group
  int number;  // of the group
  int groups;
};

// lanes: a power of two.
SHARDREC_DEVICE LaneGroup lane_group(int32_t lanes) {
  const int bits = __popc(static_cast<unsigned>(lanes) - 1);
  return {.lanes = lanes,
          .lane = lane_index() & (lanes - 1),
          .number = lane_index() >> bits,
          .groups = kWarp >> bits};
}

}  // namespace shardrec::compute::cuda
