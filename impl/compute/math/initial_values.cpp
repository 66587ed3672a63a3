#include "compute/math/initial_values.h"

#include <algorithm>

#include "compute/math/scalar.h"
#include "core/hash.h"

namespace shardrec::compute::math {
namespace {

constexpr int64_t kWords = 4;

// Columns [4 * quad, 4 * quad + 4) of a row.
class Quads {
 public:
  explicit Quads(const UniformValues& values) noexcept
      : key_(philox_key(values.key)), range_(uniform_range(values)) {}

  void fill(int64_t row, int64_t quad, float* out) const noexcept {
    const auto bits = philox({static_cast<uint32_t>(row), static_cast<uint32_t>(row >> 32),
                              static_cast<uint32_t>(quad), 0},
                             key_);
    for (size_t i = 0; i < kWords; ++i) out[i] = uniform_value(range_, bits[i]);
  }

 private:
  PhiloxKey key_;
  UniformRange range_;
};

}  // namespace

uint64_t table_key(uint64_t seed, std::string_view name) { return core::hash64(seed, name); }

void fill_uniform(const UniformValues& values, int64_t first_row, int64_t rows,
                  int64_t first_column, int64_t columns, float* data, size_t stride) noexcept {
  const Quads quads(values);
  const int64_t end = first_column + columns;
  for (int64_t r = 0; r < rows; ++r) {
    float* out = data + static_cast<size_t>(r) * stride;
    for (int64_t c = first_column; c < end;) {
      const int64_t skipped = c % kWords;
      const int64_t taken = std::min(kWords - skipped, end - c);
      if (taken == kWords) {
        quads.fill(first_row + r, c / kWords, out);
      } else {
        float quad[kWords];
        quads.fill(first_row + r, c / kWords, quad);
        std::copy_n(quad + skipped, taken, out);
      }
      out += taken;
      c += taken;
    }
  }
}

}  // namespace shardrec::compute::math
