// The dot interaction of dense/kernels.h: blocks of threads for tiles of the products of a sample, or of its gradients.
// Vectors come through shared memory, so many columns or vectors at a time; each sum is the chain of one thread.
#pragma once

#include "compute/cuda/jobs/layers.h"
#include "compute/cuda/kernels/lane_columns.h"
#include "compute/math/scalar.h"

namespace shardrec::compute::cuda {

inline constexpr int kTileVectors = 32;
inline constexpr int kTileColumns = 64;
// Each row of a tile begins in other banks, still at a multiple of 16 bytes.
inline constexpr int kPaddedColumns = kTileColumns + 4;
inline constexpr int kPaddedVectors = kTileVectors + 4;

SHARDREC_DEVICE float* sample_of(const shardrec_cuda_matrix& floats, int64_t sample) {
  return static_cast<float*>(global(floats.data)) + sample * floats.stride;
}

// Vector i of a sample: 0 is the dense one.
SHARDREC_DEVICE float* vector_of(const shardrec_cuda_matrix& dense,
                                 const shardrec_cuda_matrix& embeddings, int64_t dim,
                                 int64_t sample, int64_t i) {
  return i == 0 ? sample_of(dense, sample) : sample_of(embeddings, sample) + (i - 1) * dim;
}

// Where the product of vectors i and j < i is among those of a sample.
SHARDREC_DEVICE int64_t product_index(int64_t i, int64_t j) { return i * (i - 1) / 2 + j; }

// Copies columns [column, column + kTileColumns) of vectors [first, first + kTileVectors), as far as there are.
template <int kColumns, int kStride>
SHARDREC_DEVICE void load_vectors(const shardrec_cuda_interaction& job, int64_t sample,
                                  int64_t first, int64_t column,
                                  float (&tile)[kTileVectors][kStride]) {
  constexpr int kLanes = kTileColumns / kColumns;
  const auto thread = static_cast<int>(threadIdx.x);
  const int c = thread % kLanes * kColumns;
  if (column + c >= job.dim) return;
  constexpr int kAtOnce = 2;
  constexpr int kVectors = kThreads / kLanes;  // that a block loads by one load of each thread
  for (int v = thread / kLanes; v < kTileVectors; v += kAtOnce * kVectors) {
    float x[kAtOnce][kColumns] = {};
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int64_t i = first + v + k * kVectors;
      if (i > job.features) continue;
      LaneFloats<kColumns>::load(
          vector_of(job.dense, job.embeddings, job.dim, sample, i) + column + c, x[k]);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int at = v + k * kVectors;
      if (first + at > job.features) continue;
      if constexpr (kColumns == 4) {
        *reinterpret_cast<float4*>(&tile[at][c]) = make_float4(x[k][0], x[k][1], x[k][2], x[k][3]);
      } else {
        tile[at][c] = x[k][0];
      }
    }
  }
}

SHARDREC_DEVICE float add_dot(const float4& x, const float4& y, float sum) {
  sum = math::op::fma(x.x, y.x, sum);
  sum = math::op::fma(x.y, y.y, sum);
  sum = math::op::fma(x.z, y.z, sum);
  return math::op::fma(x.w, y.w, sum);
}

// Tile (row, column), column <= row, of the triangle of tiles.
struct TriangleTile {
  int64_t row;
  int64_t column;
};
SHARDREC_DEVICE TriangleTile triangle_tile(int64_t number) {
  auto row = static_cast<int64_t>((std::sqrt(8 * static_cast<float>(number) + 1) - 1) / 2);
  while (row * (row + 1) / 2 > number) --row;
  while ((row + 1) * (row + 2) / 2 <= number) ++row;
  return {.row = row, .column = number - row * (row + 1) / 2};
}

struct ProductTiles {
  alignas(16) float left[kTileVectors][kPaddedColumns];
  alignas(16) float right[kTileVectors][kPaddedColumns];
};

// A block for each sample and each tile of 32 x 32 products: a thread has two by two of them. tiles: of the triangle.
template <int kColumns>
SHARDREC_KERNEL(4)
multiply_vectors(shardrec_cuda_interaction job, int64_t tiles) {
  ProductTiles& memory = shared<ProductTiles>();
  const int64_t sample = int64_t{blockIdx.x} / tiles;
  const TriangleTile tile = triangle_tile(int64_t{blockIdx.x} % tiles);
  const int left = warp_index() / 2 * 8 + lane_index() / 8;    // and the one four on
  const int right = warp_index() % 2 * 16 + lane_index() % 8;  // and the one eight on
  const auto& rights = tile.row == tile.column ? memory.left : memory.right;
  float sums[2][2] = {};
  for (int64_t column = 0; column < job.dim; column += kTileColumns) {
    load_vectors<kColumns>(job, sample, tile.row * kTileVectors, column, memory.left);
    if (tile.row != tile.column) {
      load_vectors<kColumns>(job, sample, tile.column * kTileVectors, column, memory.right);
    }
    __syncthreads();
    const int count =
        job.dim - column < kTileColumns ? static_cast<int>(job.dim - column) : kTileColumns;
    int c = 0;
#pragma unroll 1
    for (; c + 4 <= count; c += 4) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float4 x = *reinterpret_cast<const float4*>(&memory.left[left + 4 * i][c]);
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const float4 y = *reinterpret_cast<const float4*>(&rights[right + 8 * j][c]);
          sums[i][j] = add_dot(x, y, sums[i][j]);
        }
      }
    }
    for (; c < count; ++c) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          sums[i][j] =
              math::op::fma(memory.left[left + 4 * i][c], rights[right + 8 * j][c], sums[i][j]);
        }
      }
    }
    __syncthreads();
  }
  float* const out = sample_of(job.out, sample);
  if (tile.row == 0) {
    const float* const dense = sample_of(job.dense, sample);
    for (int64_t c = threadIdx.x; c < job.dim; c += kThreads) out[c] = dense[c];
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int64_t of = tile.row * kTileVectors + left + 4 * i;
      const int64_t with = tile.column * kTileVectors + right + 8 * j;
      if (of <= job.features && with < of) out[job.dim + product_index(of, with)] = sums[i][j];
    }
  }
}

struct GradientTiles {
  alignas(16) float weights[kTileVectors][kPaddedVectors];
  alignas(16) float vectors[kTileVectors][kTileColumns];
};

// weights[i][j]: the gradient of the product of vectors first + i and other + j.
SHARDREC_DEVICE void load_product_gradients(const shardrec_cuda_interaction& job, int64_t sample,
                                            int64_t first, int64_t other, GradientTiles& memory) {
  const float* const gradients = sample_of(job.out, sample) + job.dim;
  const int64_t j = other + lane_index();
#pragma unroll
  for (int v = 0; v < kTileVectors; v += kWarps) {
    const int64_t i = first + v + warp_index();
    float weight = 0;
    if (i != j && i <= job.features && j <= job.features) {
      weight = gradients[i > j ? product_index(i, j) : product_index(j, i)];
    }
    memory.weights[v + warp_index()][lane_index()] = weight;
  }
}

// Adds weight * (the vector's four columns) to the sums.
SHARDREC_DEVICE void add_weighted(float weight, const float4& x, float (&sums)[4]) {
  sums[0] = math::op::fma(weight, x.x, sums[0]);
  sums[1] = math::op::fma(weight, x.y, sums[1]);
  sums[2] = math::op::fma(weight, x.z, sums[2]);
  sums[3] = math::op::fma(weight, x.w, sums[3]);
}

// A block for each sample and each tile of 64 columns of the gradients of 32 vectors: a thread has four columns of two
// of them.
struct GradientShape {
  int64_t vector_tiles;
  int64_t column_tiles;
};
template <int kColumns>
SHARDREC_KERNEL(4)
add_vector_gradients(shardrec_cuda_interaction job, GradientShape shape) {
  GradientTiles& memory = shared<GradientTiles>();
  const int64_t of_vectors = int64_t{blockIdx.x} / shape.column_tiles;
  const int64_t first_column = int64_t{blockIdx.x} % shape.column_tiles * kTileColumns;
  const int64_t sample = of_vectors / shape.vector_tiles;
  const int64_t first = of_vectors % shape.vector_tiles * kTileVectors;
  constexpr int kGroups = kTileColumns / 4;
  const int row = static_cast<int>(threadIdx.x) / kGroups;  // and the one sixteen on
  const int c = static_cast<int>(threadIdx.x) % kGroups * 4;
  const int64_t column = first_column + c;
  float sums[2][4] = {};
  if (first + row == 0) {
    const float* const start = sample_of(job.out, sample);
#pragma unroll
    for (int k = 0; k < 4; ++k) sums[0][k] = column + k < job.dim ? start[column + k] : 0;
  }
  for (int64_t other = 0; other <= job.features; other += kTileVectors) {
    load_product_gradients(job, sample, first, other, memory);
    load_vectors<kColumns>(job, sample, other, first_column, memory.vectors);
    __syncthreads();
    const int count = job.features + 1 - other < kTileVectors
                          ? static_cast<int>(job.features + 1 - other)
                          : kTileVectors;
#pragma unroll 4
    for (int j = 0; j < count; ++j) {
      const float4 x = *reinterpret_cast<const float4*>(&memory.vectors[j][c]);
      add_weighted(memory.weights[row][j], x, sums[0]);
      add_weighted(memory.weights[row + kTileVectors / 2][j], x, sums[1]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int v = 0; v < 2; ++v) {
    const int64_t i = first + row + v * (kTileVectors / 2);
    if (i > job.features) break;
    float* const to =
        vector_of(job.dense_gradient, job.embedding_gradient, job.dim, sample, i) + column;
    if constexpr (kColumns == 4) {
      if (column < job.dim) LaneFloats<4>::store(to, sums[v]);
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (column + k < job.dim) global(to)[k] = sums[v][k];
      }
    }
  }
}

}  // namespace shardrec::compute::cuda
