#include "dense/device/rounded_weights.h"

#include "dense/device/kernels.h"

namespace shardrec::dense::device {

void RoundedWeights::add(int64_t offset, int64_t rows, int64_t cols) {
  weights_.push_back({.offset = offset, .rows = rows, .cols = cols, .first = elements_});
  elements_ += rows * row_stride(cols, element_);
}

void RoundedWeights::round(const float* values) {
  for (size_t w = 0; w < weights_.size(); ++w) {
    const Weight& weight = weights_[w];
    const core::Matrix floats{const_cast<float*>(values) + weight.offset, weight.rows, weight.cols,
                              weight.cols};
    copy_rows(context_.stream(), floats, copy(w));
  }
}

ElementMatrix RoundedWeights::copy(size_t index) const noexcept {
  const Weight& weight = weights_[index];
  ElementMatrix matrix;
  matrix.data =
      const_cast<std::byte*>(copies_.data()) + static_cast<size_t>(weight.first) * bytes();
  matrix.rows = weight.rows;
  matrix.cols = weight.cols;
  matrix.stride = row_stride(weight.cols, element_);
  matrix.element = element_;
  return matrix;
}

}  // namespace shardrec::dense::device
