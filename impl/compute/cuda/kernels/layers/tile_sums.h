// Sums over the rows of matrices, in the order of dense/kernels.h: first of each tile of rows, by a thread for each
// column, then of all tiles.
#pragma once

#include "compute/cuda/kernels/layers/elements.h"
#include "compute/cuda/kernels/layers/scaled.h"
#include "compute/math/scalar.h"

namespace shardrec::compute::cuda {

// The sums of a column, from 0 in ascending rows.
struct ColumnSums {
  static constexpr int kRowsAhead = 16;  // that a thread loads at once
  float column = 0;
  SHARDREC_DEVICE void add(const shardrec_cuda_tile_sums& /*job*/, int64_t /*row*/, float x,
                           float /*gradient*/) {
    column += x;
  }
  SHARDREC_DEVICE void store(const shardrec_cuda_tile_sums& job, int64_t tile,
                             int64_t column_index) const {
    global(job.parts)[tile * job.x.cols + column_index] = column;
  }
};
struct LayerNormSums {
  static constexpr int kRowsAhead = 8;
  float weight = 0;
  float bias = 0;
  SHARDREC_DEVICE void add(const shardrec_cuda_tile_sums& job, int64_t row, float x,
                           float gradient) {
    const float mean = global(job.statistics)[2 * row];
    const float scale = global(job.statistics)[2 * row + 1];
    weight = math::op::fma(gradient, (x - mean) * scale, weight);
    bias += gradient;
  }
  SHARDREC_DEVICE void store(const shardrec_cuda_tile_sums& job, int64_t tile,
                             int64_t column_index) const {
    float* const parts = global(job.parts) + tile * 2 * job.x.cols;
    parts[column_index] = weight;
    parts[job.x.cols + column_index] = bias;
  }
};

// grid: of tiles and columns.
template <class Sums, class Elements>
SHARDREC_KERNEL(4)
sum_rows_of_tiles(shardrec_cuda_tile_sums job, ElementGrid grid) {
  constexpr bool kHasGradients = std::is_same_v<Sums, LayerNormSums>;
  constexpr int kRowsAhead = Sums::kRowsAhead;
  const ElementPlace place = place_in<1>(grid);
  if (!place.exists) return;
  int64_t row = place.row * job.tile_rows;
  const int64_t end = row + job.tile_rows < job.x.rows ? row + job.tile_rows : job.x.rows;
  Sums sums;
  for (; row + kRowsAhead <= end; row += kRowsAhead) {
    float x[kRowsAhead], gradient[kRowsAhead] = {};
#pragma unroll
    for (int r = 0; r < kRowsAhead; ++r) {
      x[r] = Elements::number(job.x.data, element_index(job.x, row + r, place.column));
      if constexpr (kHasGradients) {
        gradient[r] = Elements::number(job.dy.data, element_index(job.dy, row + r, place.column));
      }
    }
#pragma unroll
    for (int r = 0; r < kRowsAhead; ++r) sums.add(job, row + r, x[r], gradient[r]);
  }
  for (; row < end; ++row) {
    float gradient = 0;
    if constexpr (kHasGradients) {
      gradient = Elements::number(job.dy.data, element_index(job.dy, row, place.column));
    }
    sums.add(job, row, Elements::number(job.x.data, element_index(job.x, row, place.column)),
             gradient);
  }
  sums.store(job, place.row, place.column);
}

// The tree over tiles: a block for 32 elements, each warp of which takes every eighth group of so many vectors, in
// rounds, until one vector is left.
inline constexpr int kTreeFan = 8;

// The sum of the first `count` numbers in pairs of neighbours, numbers `step` apart.
SHARDREC_DEVICE float sum_of_neighbours(const float* numbers, int64_t step, int64_t count) {
  float x[kTreeFan];
#pragma unroll
  for (int k = 0; k < kTreeFan; ++k) x[k] = k < count ? numbers[k * step] : 0;
#pragma unroll
  for (int distance = 1; distance < kTreeFan; distance *= 2) {
#pragma unroll
    for (int k = 0; k < kTreeFan; k += 2 * distance) {
      if (k + distance < count) x[k] += x[k + distance];
    }
  }
  return x[0];
}

SHARDREC_KERNEL(8) add_up_tree(shardrec_cuda_tree job) {
  const int64_t element = int64_t{blockIdx.x} * kWarp + lane_index();
  const bool exists = element < job.count;
  float sum = 0;
  int64_t step = 1;
  for (int64_t left = job.tiles;; left = (left + kTreeFan - 1) / kTreeFan) {
    for (int64_t group = warp_index(); exists && group * kTreeFan < left; group += kWarps) {
      float* const first = global(job.parts) + group * kTreeFan * step * job.count + element;
      sum = sum_of_neighbours(first, step * job.count, left - group * kTreeFan);
      if (left > kTreeFan) *first = sum;
    }
    if (left <= kTreeFan) break;
    step *= kTreeFan;
    __syncthreads();
  }
  if (!exists || warp_index() != 0) return;
  if (job.loss_scale != nullptr) sum = unscaled(job.loss_scale, sum);
  float* const target = global(job.target) + element;
  *target = job.accumulate != 0 ? *target + sum : sum;
}

}  // namespace shardrec::compute::cuda
