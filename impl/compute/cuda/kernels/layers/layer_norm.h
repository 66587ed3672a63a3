// Layer norm of dense/kernels.h: sixteen lanes for each row, so that each lane has the columns of one lane of the sums.
// A row is read again for its variance and its output, from the cache. Template parameters are the types of what is
// read and of what is written.
#pragma once

#include <cmath>

#include "compute/cuda/kernels/layers/elements.h"

namespace shardrec::compute::cuda {

inline constexpr int kNormRows = kThreads / kVirtualLanes;  // of a block

// The row that this thread's lanes have; cols is 0 where there is none.
struct NormRow {
  int64_t row;
  int64_t cols;
  int64_t lane;
};

SHARDREC_DEVICE NormRow norm_row(const shardrec_cuda_matrix& x) {
  const auto thread = static_cast<int>(threadIdx.x);
  const int64_t row = int64_t{blockIdx.x} * kNormRows + thread / kVirtualLanes;
  const bool exists = row < x.rows;
  return {.row = exists ? row : 0, .cols = exists ? x.cols : 0, .lane = thread % kVirtualLanes};
}

// The tree over lanes. All lanes of the warp call it; each has the sum.
SHARDREC_DEVICE float sum_of_virtual_lanes(float sum) {
#pragma unroll
  for (int distance = kVirtualLanes / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(kAllLanes, sum, distance);
  }
  return sum;
}

template <class In, class Out>
SHARDREC_KERNEL(8)
normalize_each_row(shardrec_cuda_layer_norm job) {
  const NormRow at = norm_row(job.x);
  const auto columns = static_cast<float>(job.x.cols);
  const auto from = [&](int64_t c) {
    return In::number(job.x.data, element_index(job.x, at.row, c));
  };
  float sum = 0;
#pragma unroll 8
  for (int64_t c = at.lane; c < at.cols; c += kVirtualLanes) sum += from(c);
  const float mean = sum_of_virtual_lanes(sum) / columns;
  float squares = 0;
#pragma unroll 4
  for (int64_t c = at.lane; c < at.cols; c += kVirtualLanes) {
    math::add_square(from(c) - mean, squares);
  }
  const float variance = sum_of_virtual_lanes(squares) / columns;
  const float scale = 1 / std::sqrt(variance + job.epsilon);
  for (int64_t c = at.lane; c < at.cols; c += kVirtualLanes) {
    Out::put(job.y.data, element_index(job.y, at.row, c),
             (from(c) - mean) * scale * global(job.weight)[c] + global(job.bias)[c]);
  }
  if (job.statistics == nullptr || at.cols == 0 || at.lane != 0) return;
  global(job.statistics)[2 * at.row] = mean;
  global(job.statistics)[2 * at.row + 1] = scale;
}

template <class In, class Out>
SHARDREC_KERNEL(8)
normalize_each_gradient(shardrec_cuda_layer_norm_gradient job) {
  const NormRow at = norm_row(job.x);
  const auto columns = static_cast<float>(job.x.cols);
  const auto from = [&](int64_t c) {
    return In::number(job.x.data, element_index(job.x, at.row, c));
  };
  const auto above = [&](int64_t c) {
    return In::number(job.dy.data, element_index(job.dy, at.row, c));
  };
  const float* const weight = global(job.weight);
  const float mean = global(job.statistics)[2 * at.row];
  const float scale = global(job.statistics)[2 * at.row + 1];
  float gradients = 0, products = 0;
#pragma unroll 4
  for (int64_t c = at.lane; c < at.cols; c += kVirtualLanes) {
    const float weighted = above(c) * weight[c];
    gradients += weighted;
    products = math::op::fma(weighted, (from(c) - mean) * scale, products);
  }
  const float mean_gradient = sum_of_virtual_lanes(gradients) / columns;
  const float mean_product = sum_of_virtual_lanes(products) / columns;
  for (int64_t c = at.lane; c < at.cols; c += kVirtualLanes) {
    const float off = above(c) * weight[c] - mean_gradient;
    Out::put(job.dx.data, element_index(job.dx, at.row, c),
             (off - (from(c) - mean) * scale * mean_product) * scale);
  }
}

}  // namespace shardrec::compute::cuda
