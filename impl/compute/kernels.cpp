#include "compute/kernels.h"

namespace shardrec::compute {

// Three rows of floats (the gradient sum, a block's sum, the row itself) and the random words of a
// row, from the quad of its first column on: written in vectors of quads, read in vectors.
size_t row_update_scratch_bytes(int64_t width) {
  const auto up_to = [](int64_t columns, int64_t whole) {
    return (columns + whole - 1) / whole * whole;
  };
  const int64_t words = up_to(width + 3, 4 * kLanes) + kLanes;
  return static_cast<size_t>(3 * up_to(width, kLanes) + words) * sizeof(float);
}

}  // namespace shardrec::compute
