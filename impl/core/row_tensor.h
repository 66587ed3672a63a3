// Tensors of any dtype as rows that may lie apart: the first dimension counts rows, the others make
// up a row. Parsed once, at the border, as the views of tensor.h are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor.h"

namespace shardrec::core {

// Row r is the `columns` elements from element r * stride on; rows do not overlap.
struct RowTensor {
  std::byte* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t stride = 0;  // elements, at least columns
  int32_t dtype = 0;
  size_t element_bytes = 0;
  Device device;

  int64_t size() const noexcept { return rows * columns; }
  bool compact() const noexcept { return stride == columns || rows <= 1; }
  size_t bytes(int64_t elements) const noexcept {
    return static_cast<size_t>(elements) * element_bytes;
  }

  // On the CPU: copies elements [first, first + count), counted row by row, to or from compact memory.
  void copy_out(int64_t first, int64_t count, std::byte* to) const noexcept;
  void copy_in(int64_t first, int64_t count, const std::byte* from) const noexcept;
};

// Takes a tensor of a known dtype and any number of dimensions, on one of the devices. Rows may have any stride that
// keeps them apart; what is inside a row is compact. A tensor without dimensions is one row of one
// element.
RowTensor row_tensor(const shardrec_tensor* tensor, const char* name,
                     DeviceSet devices = kHostOnly);
// The same on any device, whether there is one of that number or not.
RowTensor row_tensor_anywhere(const shardrec_tensor* tensor, const char* name);

}  // namespace shardrec::core
