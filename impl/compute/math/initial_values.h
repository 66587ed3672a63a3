// Initial values of tables. An element depends on (seed, table name, row, column) only, so that the
// same table comes out however it is cut. Any thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "compute/math/attributes.h"

namespace shardrec::compute::math {

// The key of a table's random values: XXH3-64 of its name, seeded.
uint64_t table_key(uint64_t seed, std::string_view name);

// The element in row r and column c of the whole table is, with x = word c mod 4 of
// Philox4x32-10(counter {r mod 2^32, r / 2^32, c / 4, 0}, key {key mod 2^32, key / 2^32}):
//   u = (x >> 8) * 2^-24
//   value = float(double(low) + (double(high) - double(low)) * u), each operation in double;
//   the next float below high where the rounding reached it (low == high: low).
// low <= high, both finite.
struct UniformValues {
  uint64_t key = 0;
  float low = 0;
  float high = 0;
};

// What of the values is the same for all elements, and the value of an element's random word x.
struct UniformRange {
  double low = 0;
  double span = 0;
  float last = 0;  // the greatest value
};
inline UniformRange uniform_range(const UniformValues& values) noexcept {
  return {.low = values.low,
          .span = static_cast<double>(values.high) - values.low,
          .last = values.low < values.high
                      ? std::nextafter(values.high, -std::numeric_limits<float>::infinity())
                      : values.low};
}
SHARDREC_HOST_DEVICE inline float uniform_value(const UniformRange& range, uint32_t x) noexcept {
  const double u = static_cast<double>(static_cast<int32_t>(x >> 8)) * 0x1p-24;
  return std::min(static_cast<float>(range.low + range.span * u), range.last);
}

// Fills the cut [first_row, first_row + rows) x [first_column, first_column + columns) of the
// table; its row i is at data + i * stride.
void fill_uniform(const UniformValues& values, int64_t first_row, int64_t rows,
                  int64_t first_column, int64_t columns, float* data, size_t stride) noexcept;

}  // namespace shardrec::compute::math
