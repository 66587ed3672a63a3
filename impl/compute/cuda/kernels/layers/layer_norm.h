// Layer norm of dense/kernels.h: sixteen lanes for each row, so that each lane has the columns of one lane of the sums.
// A row is read again for its variance and its output, from the cache.
#pragma once

#include <cmath>

#include "compute/cuda/jobs/layers.h"
#include "compute/cuda/kernels/rows.h"

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

SHARDREC_KERNEL(8) normalize_each_row(shardrec_cuda_layer_norm job) {
  const NormRow at = norm_row(job.x);
  const auto columns = static_cast<float>(job.x.cols);
  const float* const from = global(job.x.data) + at.row * job.x.stride;
  float* const to = global(job.y.data) + at.row * job.y.stride;
  float sum = 0;
#pragma unroll 8
  for (int64_t c = at.lane; c < at.cols; c += kVirtualLanes) sum += from[c];
  const float mean = sum_of_virtual_lanes(sum) / columns;
  float squares = 0;
#pragma unroll 4
  for (int64_t c = at.lane; c < at.cols; c += kVirtualLanes) {
    math::add_square(from[c] - mean, squares);
  }
  const float variance = sum_of_virtual_lanes(squares) / columns;
  const float scale = 1 / std::sqrt(variance + job.epsilon);
  for (int64_t c = at.lane; c < at.cols; c += kVirtualLanes) {
    to[c] = (from[c] - mean) * scale * global(job.weight)[c] + global(job.bias)[c];
  }
  if (job.statistics == nullptr || at.cols == 0 || at.lane != 0) return;
  global(job.statistics)[2 * at.row] = mean;
  global(job.statistics)[2 * at.row + 1] = scale;
}

SHARDREC_KERNEL(8) normalize_each_gradient(shardrec_cuda_layer_norm_gradient job) {
  const NormRow at = norm_row(job.x);
  const auto columns = static_cast<float>(job.x.cols);
  const float* const from = global(job.x.data) + at.row * job.x.stride;
  const float* const above = global(job.dy.data) + at.row * job.dy.stride;
  float* const to = global(job.dx.data) + at.row * job.dx.stride;
  const float* const weight = global(job.weight);
  const float mean = global(job.statistics)[2 * at.row];
  const float scale = global(job.statistics)[2 * at.row + 1];
  float gradients = 0, products = 0;
#pragma unroll 4
  for (int64_t c = at.lane; c < at.cols; c += kVirtualLanes) {
    const float weighted = above[c] * weight[c];
    gradients += weighted;
    products = math::op::fma(weighted, (from[c] - mean) * scale, products);
  }
  const float mean_gradient = sum_of_virtual_lanes(gradients) / columns;
  const float mean_product = sum_of_virtual_lanes(products) / columns;
  for (int64_t c = at.lane; c < at.cols; c += kVirtualLanes) {
    const float off = above[c] * weight[c] - mean_gradient;
    to[c] = (off - (from[c] - mean) * scale * mean_product) * scale;
  }
}

}  // namespace shardrec::compute::cuda
