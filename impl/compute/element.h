// Element types of tables and gradients, and how a float becomes one of 16 bits. Arithmetic and
// optimizer state are fp32; a 16-bit row is widened, stepped and rounded once when it is stored.
//
// Nearest: round to nearest, ties to even; subnormals are kept; too large is an infinity.
//
// Stochastic: a number between two neighbours |a| < |x| < |b| of the type becomes b with
// probability f = (x - a) / (b - a), so the mean of many roundings is the number; one that the type
// has, subnormals included, stays. It is infinite exactly where nearest is: between the largest
// finite number and there it becomes that number. It is b where floor(f * 2^31) + floor(word / 2)
// reaches 2^31. The random word of an element is word (column mod 4) of
//   Philox4x32-10(counter {row mod 2^32, row / 2^32, column / 4, step mod 2^32}, key)
// with row and column those of the whole table, and the key the first two words of
//   Philox4x32-10(counter {seed mod 2^32, seed / 2^32, step / 2^32, use}, key table_key)
// with use 1 for a step and 2 for max_norm: the same bits under every plan, number of threads and
// instruction set.
//
// A NaN becomes the positive quiet NaN without payload: 0x7E00, 0x7FC0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shardrec/tensor.h"

namespace shardrec::compute {

enum class Element : uint8_t { kFloat32, kFloat16, kBfloat16 };

constexpr size_t element_bytes(Element element) noexcept {
  return element == Element::kFloat32 ? 4 : 2;
}

// Of a dtype that tables have.
constexpr Element element_of(shardrec_dtype dtype) noexcept {
  switch (dtype) {
    case SHARDREC_FLOAT16:
      return Element::kFloat16;
    case SHARDREC_BFLOAT16:
      return Element::kBfloat16;
    default:
      return Element::kFloat32;
  }
}

// How rows of 16 bits are rounded when they are stored.
struct Rounding {
  bool stochastic = false;
  uint64_t seed = 0;
  uint64_t step = 0;
  uint64_t table_key = 0;  // math/initial_values.h
};

// A row of floats as numbers q of 8 bits: x = q * scale + offset.
struct RowScale {
  float scale = 0;
  float offset = 0;
};

// Rows of a smaller range are sent as if all their numbers were the least.
inline constexpr float kLeastRange = 0x1p-100F;

}  // namespace shardrec::compute
