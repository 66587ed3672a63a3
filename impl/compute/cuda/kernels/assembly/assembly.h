// Rows of several blocks added up (compute::PooledOutput, compute::NodeSum), and rows put in the order of
// ids (compute::SequenceOutput). Threads are cut into groups of lanes, each of which works on some items
// at once, so that some rows are on their way: a lane has some columns of them.
#pragma once

#include "compute/cuda/kernels/columns.h"
#include "compute/cuda/kernels/presence.h"

namespace shardrec::compute::cuda {

// Where a group's items are: at, at + step, ... below end.
struct GroupItems {
  int64_t at;
  int64_t step;
  int64_t end;

  SHARDREC_DEVICE int64_t item(int k) const { return at + k * step; }
};

template <int kAtOnce, class Job>
SHARDREC_DEVICE GroupItems items_of_group(const Job& job, int64_t block, int64_t items) {
  const int groups = kThreads / job.lanes;
  return {.at = block * groups * kAtOnce + static_cast<int>(threadIdx.x) / job.lanes,
          .step = groups,
          .end = items};
}

// The sum of an item, as it grows: over the nodes, and over the addends of the node that is added.
template <int kColumns>
struct GrowingSum {
  float row[kColumns] = {};
  float node[kColumns] = {};
  bool row_started = false;
  bool node_started = false;

  SHARDREC_DEVICE void add(const float (&x)[kColumns]) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) node[c] = node_started ? __fadd_rn(node[c], x[c]) : x[c];
    node_started = true;
  }
  SHARDREC_DEVICE void end_node() {
    if (!node_started) return;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) row[c] = row_started ? __fadd_rn(row[c], node[c]) : node[c];
    row_started = true;
    node_started = false;
  }
};

// Writes the sum of an item, in columns from `column` on.
template <int kColumns>
SHARDREC_DEVICE void put_sum(const shardrec_cuda_row_sum& job, int64_t item, int64_t column,
                             GrowingSum<kColumns>& sum) {
  if (job.lengths != nullptr) {
    const uint32_t length = global(job.lengths)[item];
    if (length == 0) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) sum.row[c] = 0;
      sum.row_started = true;
    } else if (job.mean != 0) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        sum.row[c] = __fdiv_rn(sum.row[c], static_cast<float>(length));
      }
    }
  }
  if (!sum.row_started) return;
  const auto store = [&](int64_t row) {
    store_columns(job.out, job.out_element, row * job.out_stride + column, sum.row);
  };
  if (job.sample_starts != nullptr) {
    const uint32_t end = global(job.sample_starts)[item + 1];
    for (uint32_t s = global(job.sample_starts)[item]; s < end; ++s) store(global(job.samples)[s]);
  } else {
    store(job.out_rows.bits != nullptr ? row_of(job.out_rows, item) : item);
  }
}

// first_block: [count + 1], the blocks of the sums before each.
template <int kColumns>
SHARDREC_KERNEL(3)
add_rows(const shardrec_cuda_row_sum* jobs, const int64_t* first_block, int32_t count) {
  constexpr int kAtOnce = SHARDREC_CUDA_SUMS_AT_ONCE;
  const int32_t number = last_start(first_block, count, blockIdx.x);
  const shardrec_cuda_row_sum& job = *global(&jobs[number]);
  const GroupItems items =
      items_of_group<kAtOnce>(job, blockIdx.x - first_block[number], job.items);
  const int64_t step = job.lanes * kColumns;
  for (int64_t column = static_cast<int>(threadIdx.x) % job.lanes * kColumns; column < job.cols;
       column += step) {
    GrowingSum<kColumns> sum[kAtOnce];
    for (int64_t a = 0; a < job.addend_count; ++a) {
      const shardrec_cuda_addend addend = global(job.addends)[a];
      float x[kAtOnce][kColumns];
      bool held[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int64_t item = items.item(k);
        held[k] = item < items.end && is_present(addend.presence, item);
        if (!held[k]) continue;
        load_columns(addend.rows + row_of(addend.presence, item) * addend.stride + column, x[k]);
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (addend.begins_node != 0) sum[k].end_node();
        if (held[k]) sum[k].add(x[k]);
      }
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (items.item(k) >= items.end) continue;
      sum[k].end_node();
      put_sum(job, items.item(k), column, sum[k]);
    }
  }
}

// The row of the message for the n-th id of a block.
SHARDREC_DEVICE int64_t answer_of(const shardrec_cuda_sequence_rows& rows, int64_t n) {
  if (rows.codes == nullptr) return n;
  // At any address.
  uint32_t code = 0;
  for (int64_t i = 0; i < rows.code_bytes; ++i) {
    code |= uint32_t{global(rows.codes)[n * rows.code_bytes + i]} << (8 * i);
  }
  return code;
}

// Where the row of each id is, null for one that was dropped. A warp for each chunk of ids, which counts
// how many of them each addend had so far. first_chunk: [count + 1], the chunks of the sequences before
// each.
SHARDREC_KERNEL(4)
find_sources(const shardrec_cuda_sequence* jobs, const int64_t* first_chunk, int32_t count) {
  const int64_t warp = grid_warp_index();
  if (warp >= first_chunk[count]) return;
  const int32_t number = last_start(first_chunk, count, warp);
  const shardrec_cuda_sequence& job = *global(&jobs[number]);
  const int64_t chunk = warp - first_chunk[number];
  uint32_t* const next_row = global(job.next_rows) + chunk * job.addend_count;
  for (int64_t a = lane_index(); a < job.addend_count; a += kWarp) {
    next_row[a] = global(global(job.addends)[a].chunk_rows)[chunk];
  }
  __syncwarp();
  for (int first = 0; first < SHARDREC_CUDA_CHUNK; first += kWarp) {
    const int64_t id = chunk * SHARDREC_CUDA_CHUNK + first + lane_index();
    int32_t interval = -1;
    if (id < job.ids) interval = job.intervals == nullptr ? 0 : global(job.intervals)[id];
    const int32_t addend = interval >= 0 ? global(job.addend_of)[interval] : -1;
    uint32_t row = 0;
    unsigned left = __ballot_sync(kAllLanes, addend >= 0);
    while (left != 0) {
      const int leader = __ffs(static_cast<int>(left)) - 1;
      const int32_t of_leader = __shfl_sync(kAllLanes, addend, leader);
      const unsigned same = __ballot_sync(kAllLanes, addend == of_leader);
      const uint32_t next = next_row[of_leader];
      if (addend == of_leader) {
        row = next + static_cast<uint32_t>(__popc(same & ((1U << lane_index()) - 1)));
      }
      __syncwarp();
      if (lane_index() == leader) next_row[of_leader] = next + static_cast<uint32_t>(__popc(same));
      __syncwarp();
      left &= ~same;
    }
    if (id >= job.ids) continue;
    if (addend < 0) {
      global(job.source)[id] = nullptr;
    } else {
      const shardrec_cuda_sequence_rows& rows = global(job.addends)[addend];
      global(job.source)[id] = rows.rows + answer_of(rows, row) * rows.stride;
    }
  }
}

// first_block: [count + 1], the blocks of the sequences before each.
template <int kColumns>
SHARDREC_KERNEL(4)
copy_sources(const shardrec_cuda_sequence* jobs, const int64_t* first_block, int32_t count) {
  constexpr int kAtOnce = SHARDREC_CUDA_COPIES_AT_ONCE;
  const int32_t number = last_start(first_block, count, blockIdx.x);
  const shardrec_cuda_sequence& job = *global(&jobs[number]);
  const GroupItems ids = items_of_group<kAtOnce>(job, blockIdx.x - first_block[number], job.ids);
  const float* source[kAtOnce];
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) {
    source[k] = ids.item(k) < ids.end ? global(job.source)[ids.item(k)] : nullptr;
  }
  const int64_t step = job.lanes * kColumns;
  for (int64_t column = static_cast<int>(threadIdx.x) % job.lanes * kColumns; column < job.cols;
       column += step) {
    float x[kAtOnce][kColumns] = {};
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (source[k] != nullptr) load_columns(source[k] + column, x[k]);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (ids.item(k) >= ids.end) continue;
      store_columns(job.out, job.out_element, ids.item(k) * job.out_stride + column, x[k]);
    }
  }
}

}  // namespace shardrec::compute::cuda
