#include "compute/cpu/init.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/hash.h"
#include "core/philox.h"

namespace shardrec::compute {
namespace {

constexpr int64_t kWords = 4;

// Columns [4 * quad, 4 * quad + 4) of a row.
class Quads {
 public:
  explicit Quads(const UniformValues& values) noexcept
      : key_(core::philox_key(values.key)),
        low_(values.low),
        span_(static_cast<double>(values.high) - values.low),
        last_(values.low < values.high
                  ? std::nextafter(values.high, -std::numeric_limits<float>::infinity())
                  : values.low) {}

  void fill(int64_t row, int64_t quad, float* out) const noexcept {
    const auto bits = core::philox({static_cast<uint32_t>(row), static_cast<uint32_t>(row >> 32),
                                    static_cast<uint32_t>(quad), 0},
                                   key_);
    for (size_t i = 0; i < kWords; ++i) {
      const double u = static_cast<double>(static_cast<int32_t>(bits[i] >> 8)) * 0x1p-24;
      out[i] = std::min(static_cast<float>(low_ + span_ * u), last_);
    }
  }

 private:
  core::PhiloxKey key_;
  double low_;
  double span_;
  float last_;
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

}  // namespace shardrec::compute
