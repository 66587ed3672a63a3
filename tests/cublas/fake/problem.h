// A product as a call of the library describes it, in columns: D [rows, columns] = op(A) [rows, depth]
// op(B) [depth, columns] + beta C; and what of it is misuse, or has no algorithm.
#pragma once

#include <cstdint>

#include "objects.h"

namespace fake_cublaslt {

struct Problem {
  MatmulDescType desc;
  MatrixLayoutType a, b, c, d;

  int64_t rows() const { return d.rows; }
  int64_t columns() const { return d.columns; }
  int64_t depth() const { return desc.transpose_a == kTransposed ? a.rows : a.columns; }
  bool has_mask() const { return (desc.epilogue & 128U) != 0; }
  bool has_relu_gradient() const { return (desc.epilogue & 8U) != 0; }
  bool has_bias() const { return desc.epilogue != kDefault && desc.epilogue != kDrelu; }
  // Of everything but addresses.
  uint64_t fingerprint() const;
};

// kInvalidValue, and a violation, or kNotSupported, or kSuccess.
Status check(const Problem& problem, const char* call);

// The largest power of 2 up to 256 that divides the address.
uint32_t alignment(const void* address);

}  // namespace fake_cublaslt
