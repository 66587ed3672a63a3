// Gradients of one layer for a tile of rows: of its input, and what its own rows add to the gradients of
// its parameters. Gradients of weight matrices follow when all rows are done (weight_gradients.h).
#pragma once

#include <cstdint>

#include "core/tensor.h"
#include "dense/gemm.h"
#include "dense/layers/forward.h"

namespace shardrec::dense {

// Rows of a batch at a layer, on the way back. What was written by forward is only read.
template <class Matrix>
struct BackwardRowsOf {
  Matrix x;
  Matrix y;   // linear with an activation
  Matrix dy;  // gradient of y
  Matrix dz;  // written: linear the gradient of x W^T + b, may be dy; cross the same of its product
  Matrix dx;  // written; null: not wanted
  float* column_sums =
      nullptr;  // written: of the parameters that are vectors, one behind the other

  // Of a cross layer.
  Matrix origin;
  Matrix product;
  Matrix low_gradient;     // written: of x V^T
  Matrix origin_gradient;  // of floats: the sum over the layers of the run; null: not wanted
  bool starts_origin_sum = false;  // the last layer of the run: the sum is written, else added to
  bool adds_origin_gradient = false;  // the first layer of the run: dx gets the sum

  const float* statistics = nullptr;  // layer norm: as forward wrote them
  const DropoutMask* mask = nullptr;  // dropout: as in forward
  int64_t first_row = 0;
  WrittenRounding rounding;  // of floats
};
using BackwardRows = BackwardRowsOf<core::Matrix>;

// Any thread.
void backward_layer(const Gemm& gemm, const LayerValues& layer, const BackwardRows& rows) noexcept;

}  // namespace shardrec::dense
