// Layers as training and serving compute them. A batch goes through a stack of them in tiles of rows, so
// that what one layer writes is in cache when the next one reads. How rows are cut is by the shapes alone,
// hence bits are the same wherever a batch of that size is computed.
#pragma once

#include <array>
#include <cstdint>

#include "compute/element.h"
#include "core/tensor.h"
#include "dense/gemm.h"
#include "dense/kernels.h"
#include "dense/layers/shape.h"

namespace shardrec::dense {

// To what the matrices of floats that a layer writes are rounded (precision.h).
struct WrittenRounding {
  compute::Element inner = compute::Element::kFloat32;  // those that the layer keeps
  // What goes to the next layer: forward y, backward dx.
  compute::Element result = compute::Element::kFloat32;
};

// A layer with its parameters where they lie; null where its kind has none of that role.
struct LayerValues {
  LayerShape shape;
  int64_t inputs = 0;
  int64_t outputs = 0;
  std::array<const float*, kRoles> parameters{};

  const float* of(Role role) const noexcept { return parameters[static_cast<size_t>(role)]; }
};

// Rows of a batch at a layer. All matrices have the same number of rows, and a stride that BLAS accepts.
template <class Matrix>
struct ForwardRowsOf {
  Matrix origin;  // cross: the input of the first layer of its run
  Matrix x;
  Matrix y;
  Matrix product;               // cross: where x W^T + b is written; may be y
  Matrix low;                   // cross with a rank: where x V^T is written
  float* statistics = nullptr;  // layer norm: mean and 1 / deviation of each row; null: not wanted
  const DropoutMask* mask = nullptr;  // dropout; null: evaluation, where y = x
  int64_t first_row = 0;              // dropout: of these in the batch
  WrittenRounding rounding;           // of floats
};
using ForwardRows = ForwardRowsOf<core::Matrix>;

// Any thread.
void forward_layer(const Gemm& gemm, const LayerValues& layer, const ForwardRows& rows) noexcept;

// The matrix with a stride that BLAS accepts: that of a single row does not matter to us. Throws
// INVALID_ARGUMENT, naming the argument, where it has more than 32 bits.
core::Matrix with_blas_stride(core::Matrix matrix, const char* name);

// Throws INVALID_ARGUMENT, naming the argument, where the matrix is of another shape.
void require_shape(const core::Matrix& matrix, const char* name, int64_t rows, int64_t cols);

// Rounds in place to the type, if it is one of 16 bits.
void round_rows(const core::Matrix& matrix, compute::Element to) noexcept;

// Rows [first, first + rows) of the matrix; null stays null.
core::Matrix rows_of(const core::Matrix& matrix, int64_t first, int64_t rows) noexcept;

// Is what its matrix products do once per tile, whatever its rows (packing the weights), so much that
// larger tiles pay?
bool is_wide(const LayerShape& shape, int64_t inputs) noexcept;

// Rows of a tile of a stack, one of whose layers is wide or none. Large tiles multiply faster, small
// ones keep more threads busy.
int64_t tile_rows(int64_t batch, bool is_wide) noexcept;
inline constexpr int64_t kMostTileRows = 128;  // a multiple of every size that tile_rows() gives

}  // namespace shardrec::dense
