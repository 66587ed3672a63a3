// Floats of a batch, in the host's memory or on a CUDA device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <shardrec/shardrec.hpp>
#include <vector>

namespace shardrec::cli {

// `count` columns of a matrix from column `first` on, where they are: its rows are as far apart.
inline Matrix columns(const Matrix& whole, int64_t first, int64_t count) {
  shardrec_tensor part = *whole.get();
  if (part.stride[0] == 0) part.stride[0] = part.shape[1];
  part.stride[1] = 1;
  part.shape[1] = count;
  if (part.data != nullptr) part.data = static_cast<float*>(part.data) + first;
  return Matrix(part);
}

class Floats {
 public:
  // device: as SHARDREC_OPTION_DEVICE has it.
  explicit Floats(int64_t device) : device_(device) {}

  // Of any content where it has grown, valid until the next call.
  Matrix matrix(int64_t rows, int64_t columns) {
    grow(rows * columns);
    if (memory_) return memory_->matrix(SHARDREC_FLOAT32, rows, columns);
    return {floats_.data(), rows, columns};
  }
  // The same of one dimension.
  Vector vector(int64_t length) {
    grow(length);
    if (memory_) return memory_->vector(SHARDREC_FLOAT32, length);
    return {floats_.data(), static_cast<size_t>(length)};
  }

 private:
  void grow(int64_t count) {
    if (count <= capacity_) return;
    capacity_ = count + count / 8;
    if (device_ < 0) {
      floats_.resize(static_cast<size_t>(capacity_));
    } else {
      memory_.emplace(SHARDREC_DEVICE_CUDA, static_cast<int32_t>(device_),
                      capacity_ * static_cast<int64_t>(sizeof(float)));
    }
  }

  int64_t device_;
  int64_t capacity_ = 0;
  std::vector<float> floats_;
  std::optional<Memory> memory_;
};

}  // namespace shardrec::cli
