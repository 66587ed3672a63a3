// Copies in 16 bits of the matrices that a stack on a device multiplies by. Rows begin at multiples of 16 bytes, as
// tensor cores want them.
//
// Thread rule: that of the context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compute/buffer.h"
#include "dense/device/context.h"
#include "dense/element_matrix.h"

namespace shardrec::dense::device {

class RoundedWeights {
 public:
  // element: of the copies; one of floats where there are to be none.
  RoundedWeights(Context& context, compute::Element element)
      : context_(context), element_(element), copies_(context.memory()) {}

  // Room for so many more.
  void reserve(size_t more) { weights_.reserve(weights_.size() + more); }
  // One more matrix [rows, cols], whose floats begin `offset` elements behind those of the stack's first parameter.
  void add(int64_t offset, int64_t rows, int64_t cols);
  // Throws OUT_OF_MEMORY.
  void make_room() { copies_.resize(static_cast<size_t>(elements_) * bytes()); }

  // Enqueues the rounding of all, values being those of the stack's parameters. After make_room(). Throws DEVICE_ERROR.
  void round(const float* values);
  // In the order in which they were added. After make_room().
  ElementMatrix copy(size_t index) const noexcept;

 private:
  struct Weight {
    int64_t offset = 0;  // of the floats
    int64_t rows = 0;
    int64_t cols = 0;
    int64_t first = 0;  // of the copy, in elements
  };

  size_t bytes() const noexcept { return compute::element_bytes(element_); }  // of an element

  Context& context_;
  compute::Element element_;
  std::vector<Weight> weights_;
  int64_t elements_ = 0;  // of all copies
  compute::Buffer copies_;
};

}  // namespace shardrec::dense::device
