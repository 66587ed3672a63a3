#include "dense/linear.h"

#include <limits>

#include "core/error.h"
#include "dense/kernels.h"

namespace shardrec::dense {
namespace {

constexpr int64_t kWideLayer = int64_t{1} << 18;  // weights
constexpr int64_t kSmallBatch = 1024;

}  // namespace

core::Matrix with_blas_stride(core::Matrix matrix, const char* name) {
  if (matrix.rows <= 1) matrix.stride = matrix.cols;
  if (matrix.stride > std::numeric_limits<int32_t>::max()) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("the row stride of ", name, " is ", matrix.stride,
                              " elements; at most 2147483647 is accepted"),
               {.value = matrix.stride});
  }
  return matrix;
}

void linear_forward(const Gemm& gemm, const LinearLayer& layer, const core::Matrix& x,
                    const core::Matrix& y) noexcept {
  const shardrec_gemm job{.m = x.rows,
                          .n = layer.outputs,
                          .k = layer.inputs,
                          .a = x.data,
                          .b = layer.weight,
                          .c = y.data,
                          .lda = x.stride,
                          .ldb = layer.inputs,
                          .ldc = y.stride,
                          .beta = 0,
                          .transpose_a = 0,
                          .transpose_b = 1};
  gemm.sgemm(&job);
  kernels().bias_activation(y.data, y.stride, x.rows, layer.outputs, layer.bias, layer.relu);
}

bool is_wide(int64_t inputs, int64_t outputs) noexcept { return inputs * outputs >= kWideLayer; }

int64_t tile_rows(int64_t batch, bool is_wide) noexcept {
  return batch <= kSmallBatch && !is_wide ? kMostTileRows / 2 : kMostTileRows;
}

}  // namespace shardrec::dense
