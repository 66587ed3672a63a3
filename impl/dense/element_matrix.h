// A matrix of a stack of layers, wherever it is: of floats, or of a type of 16 bits on a device.
//
// Owns nothing. Any thread.
#pragma once

#include <cstdint>

#include "compute/element.h"
#include "core/tensor.h"

namespace shardrec::dense {

// Row r begins r * stride elements behind data; columns are neighbours.
struct ElementMatrix {
  ElementMatrix() = default;
  ElementMatrix(const core::Matrix& floats) noexcept  // NOLINT(google-explicit-constructor)
      : data(floats.data), rows(floats.rows), cols(floats.cols), stride(floats.stride) {}

  // Of floats.
  core::Matrix floats() const noexcept { return {static_cast<float*>(data), rows, cols, stride}; }
  bool is_of_floats() const noexcept { return element == compute::Element::kFloat32; }

  void* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;
  compute::Element element = compute::Element::kFloat32;
};

// Elements from a row to the next in memory of a stack: rows of 16 bits begin at multiples of 16 bytes, as tensor cores
// want them.
constexpr int64_t row_stride(int64_t cols, compute::Element element) noexcept {
  if (element == compute::Element::kFloat32) return cols;
  constexpr int64_t kAligned = 16 / sizeof(uint16_t);
  return (cols + kAligned - 1) / kAligned * kAligned;
}

}  // namespace shardrec::dense
