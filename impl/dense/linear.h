// One linear layer as training and serving compute it: y = activation(x W^T + b). A batch goes through
// a stack of them in tiles of rows, so that what one layer writes is in cache when the next one reads.
// How rows are cut is by the shapes alone, hence bits are the same wherever a batch of that size is
// computed.
#pragma once

#include <cstdint>

#include "core/tensor.h"
#include "dense/gemm.h"

namespace shardrec::dense {

struct LinearLayer {
  int64_t inputs = 0;
  int64_t outputs = 0;
  const float* weight = nullptr;  // [outputs, inputs]
  const float* bias = nullptr;    // [outputs]
  bool relu = false;
};

// The matrix with a stride that BLAS accepts: that of a single row does not matter to us. Throws
// INVALID_ARGUMENT, naming the argument, where it has more than 32 bits.
core::Matrix with_blas_stride(core::Matrix matrix, const char* name);

// x [rows, inputs], y [rows, outputs], both with_blas_stride. Any thread.
void linear_forward(const Gemm& gemm, const LinearLayer& layer, const core::Matrix& x,
                    const core::Matrix& y) noexcept;

// Is what a matrix product does once per tile, whatever its rows (packing the weights), so much that
// larger tiles pay?
bool is_wide(int64_t inputs, int64_t outputs) noexcept;

// Rows of a tile of a stack, one of whose layers is wide or none. Large tiles multiply faster, small
// ones keep more threads busy.
int64_t tile_rows(int64_t batch, bool is_wide) noexcept;
inline constexpr int64_t kMostTileRows = 128;  // a multiple of every size that tile_rows() gives

}  // namespace shardrec::dense
