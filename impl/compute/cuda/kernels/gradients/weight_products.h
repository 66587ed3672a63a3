// Gradients of the weights of ids: products of rows with gradients of bags (compute::WeightProducts), and
// their sums over the parts of a table (compute::WeightGradients).
#pragma once

#include "compute/cuda/kernels/columns.h"
#include "compute/cuda/kernels/presence.h"

namespace shardrec::compute::cuda {

// Ids that a group has on their way.
inline constexpr int kProductsAtOnce = 2;

// The bag of an id: the last one that begins at it or before, of bags [bag, end).
SHARDREC_DEVICE int64_t bag_of(const uint32_t* first_id, int64_t bag, int64_t end, int64_t id) {
  while (end - bag > 1) {
    const int64_t middle = bag + (end - bag) / 2;
    if (global(first_id)[middle] <= id) {
      bag = middle;
    } else {
      end = middle;
    }
  }
  return bag;
}

SHARDREC_DEVICE int64_t id_at(const shardrec_cuda_weight_products& job, int64_t i) {
  return job.ids_are_64 != 0 ? static_cast<const int64_t*>(global(job.ids))[i]
                             : int64_t{static_cast<const int32_t*>(global(job.ids))[i]};
}

// The tree over the 16 lanes of a sum, Row::kColumns of which this thread has. All lanes of the warp call
// it. The sum is that of the first thread of a group.
template <class Row>
SHARDREC_DEVICE float add_lanes(float (&lane)[Row::kColumns]) {
#pragma unroll
  for (int distance = kVirtualLanes / Row::kColumns / 2; distance > 0; distance /= 2) {
#pragma unroll
    for (int c = 0; c < Row::kColumns; ++c) {
      lane[c] = __fadd_rn(lane[c], __shfl_xor_sync(kAllLanes, lane[c], distance));
    }
  }
#pragma unroll
  for (int half = Row::kColumns / 2; half > 0; half /= 2) {
#pragma unroll
    for (int c = 0; c < half; ++c) lane[c] = __fadd_rn(lane[c], lane[c + half]);
  }
  return lane[0];
}

// A group of threads, that have the 16 lanes of a sum together, takes some ids at once. first_block:
// [count + 1], the blocks of threads of the jobs before each.
template <class Row>
SHARDREC_KERNEL(2)
multiply_rows(const shardrec_cuda_weight_products* jobs, const int64_t* first_block,
              int32_t count) {
  constexpr int kLanes = kVirtualLanes / Row::kColumns;
  constexpr int kGroups = kThreads / kLanes;
  constexpr int kAtOnce = kProductsAtOnce;
  const int32_t number = last_start(first_block, count, blockIdx.x);
  const shardrec_cuda_weight_products& job = *global(&jobs[number]);
  const int64_t first = (blockIdx.x - first_block[number]) * SHARDREC_CUDA_PRODUCT_IDS;
  const int64_t left = job.id_count - first;
  const int64_t end = first + (left < SHARDREC_CUDA_PRODUCT_IDS ? left : SHARDREC_CUDA_PRODUCT_IDS);
  const auto group = static_cast<int>(threadIdx.x) / kLanes;
  const int64_t lane = static_cast<int>(threadIdx.x) % kLanes;
  // Every bag has an id: those of the block of threads are few.
  const int64_t first_bag = bag_of(job.first_id, 0, job.bags, first);
  const int64_t end_bag =
      first_bag + (end - first) < job.bags ? first_bag + (end - first) : job.bags;
  for (int64_t at = first; at < end; at += kGroups * kAtOnce) {
    int64_t row[kAtOnce];
    const float* gradient[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      // Where they end, the last one again: all lanes stay together.
      const int64_t own = at + group * kAtOnce + k;
      const int64_t i = own < end ? own : end - 1;
      row[k] = id_at(job, i);
      gradient[k] = global(job.gradients) + bag_of(job.first_id, first_bag, end_bag, i) * job.width;
    }
    for (int64_t r = 0; r < job.range_count; ++r) {
      const shardrec_cuda_column_range range = global(job.ranges)[r];
      float sum[kAtOnce][Row::kColumns] = {};
      for (int64_t column = range.begin + lane * Row::kColumns; column < range.end;
           column += kVirtualLanes) {
        typename Row::Raw raw[kAtOnce];
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k)
          raw[k] = raw_at<Row>(job.table, job.stride, row[k], column);
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) {
          float x[Row::kColumns];
          float y[Row::kColumns];
          Row::widen(raw[k], x);
          load_columns(gradient[k] + column, y);
#pragma unroll
          for (int c = 0; c < Row::kColumns; ++c) sum[k][c] = __fmaf_rn(x[c], y[c], sum[k][c]);
        }
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const float product = add_lanes<Row>(sum[k]);
        const int64_t own = at + group * kAtOnce + k;
        if (lane == 0 && own < end) global(job.out)[own * job.range_count + r] = product;
      }
    }
  }
}

SHARDREC_DEVICE int32_t interval_of(const shardrec_cuda_weight_gradients& job, int64_t id) {
  return job.intervals == nullptr ? 0 : job.intervals[id];
}

// Which ids each part of the table got: a warp for each 64 of them. first_word: [count + 1], the words of
// ids of the features before each.
SHARDREC_KERNEL(8)
mark_parts(const shardrec_cuda_weight_gradients* jobs, const int64_t* first_word, int32_t count) {
  const int64_t warp = grid_warp_index();
  if (warp >= first_word[count]) return;
  const int32_t number = last_start(first_word, count, warp);
  const shardrec_cuda_weight_gradients& job = jobs[number];
  const int64_t word = warp - first_word[number];
  const int64_t words = first_word[number + 1] - first_word[number];
  const uint8_t* got[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t id = word * 64 + half * kWarp + lane_index();
    const int32_t interval = id < job.ids ? interval_of(job, id) : -1;
    got[half] = interval < 0 ? nullptr : job.got + interval * job.part_count;
  }
  for (int64_t part = 0; part < job.part_count; ++part) {
    uint64_t bits = 0;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const bool has = got[half] != nullptr && got[half][part] != 0;
      bits |= uint64_t{__ballot_sync(kAllLanes, has)} << (half * kWarp);
    }
    if (lane_index() == 0) job.bits[part * words + word] = bits;
  }
}

// A thread for each id.
SHARDREC_KERNEL(4)
add_products(const shardrec_cuda_weight_gradients* jobs, const int64_t* first_block,
             int32_t count) {
  const int32_t number = last_start(first_block, count, blockIdx.x);
  const shardrec_cuda_weight_gradients& job = jobs[number];
  const int64_t id = (blockIdx.x - first_block[number]) * kThreads + threadIdx.x;
  if (id >= job.ids) return;
  const int32_t interval = job.terms == nullptr ? -1 : interval_of(job, id);
  float sum = 0;
  if (interval >= 0) {
    for (int32_t t = job.first_term[interval]; t < job.first_term[interval + 1]; ++t) {
      const shardrec_cuda_product_term term = job.terms[t];
      const shardrec_cuda_product_rows& part = job.parts[term.part];
      sum = __fadd_rn(sum, part.rows[row_of(part.presence, id) * part.ranges + term.range]);
    }
  }
  job.out[id] = sum;
}

}  // namespace shardrec::compute::cuda
