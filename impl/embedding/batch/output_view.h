// An output, or the gradient of one, in the caller's memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compute/element.h"
#include "core/tensor.h"

namespace shardrec::embedding {

struct OutputView {
  std::byte* data = nullptr;
  compute::Element element = compute::Element::kFloat32;
  int64_t stride = 0;  // elements between rows
  core::Device device = {};

  void* at(int64_t row, int64_t column) const {
    return data + static_cast<size_t>(row * stride + column) * compute::element_bytes(element);
  }
  // That of the first row; null where there are no rows.
  void* column(int64_t column) const { return data == nullptr ? nullptr : at(0, column); }
};

}  // namespace shardrec::embedding
