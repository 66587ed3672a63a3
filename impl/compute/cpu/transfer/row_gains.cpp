#include "compute/cpu/transfer/row_gains.h"

#include <algorithm>
#include <array>

#include "compute/math/gains.h"

namespace shardrec::compute::cpu {
namespace {

// Elements that a task adds, about.
constexpr int64_t kGainsOfTask = 64 << 10;
// Numbers of 16 bits are widened so many at a time.
constexpr int64_t kWidened = 256;

void add_floats(float* row, const float* before, const float* after, int64_t count,
                bool at_least_zero) {
  for (int64_t i = 0; i < count; ++i) {
    row[i] = math::add_gain(row[i], before[i], after[i], at_least_zero);
  }
}

void add_halves(const RowGains& gains, std::byte* row, const std::byte* before,
                const std::byte* after, const Kernels& kernels) {
  const Element element = gains.rows.element;
  std::array<float, kWidened> numbers;
  std::array<float, kWidened> numbers_before;
  std::array<float, kWidened> numbers_after;
  for (int64_t at = 0; at < gains.width; at += kWidened) {
    const int64_t count = std::min(kWidened, gains.width - at);
    const size_t skipped = static_cast<size_t>(at) * element_bytes(element);
    kernels.widen(row + skipped, element, numbers.data(), count);
    kernels.widen(before + skipped, element, numbers_before.data(), count);
    kernels.widen(after + skipped, element, numbers_after.data(), count);
    add_floats(numbers.data(), numbers_before.data(), numbers_after.data(), count,
               gains.at_least_zero);
    kernels.narrow(numbers.data(), element, row + skipped, count);
  }
}

const float* floats_at(const std::byte* bytes) {
  return static_cast<const float*>(static_cast<const void*>(bytes));
}

void add_rows(const RowGains& gains, int64_t first, int64_t last, const Kernels& kernels) {
  const size_t bytes = element_bytes(gains.rows.element);
  const size_t row_bytes = static_cast<size_t>(gains.width) * bytes;
  for (int64_t r = first; r < last; ++r) {
    const auto number =
        static_cast<size_t>(gains.rows.numbers == nullptr ? r : gains.rows.numbers[r]);
    std::byte* const row =
        static_cast<std::byte*>(gains.rows.data) + number * gains.rows.stride * bytes;
    const size_t skipped = static_cast<size_t>(r) * row_bytes;
    if (gains.rows.element == Element::kFloat32) {
      add_floats(static_cast<float*>(static_cast<void*>(row)), floats_at(gains.before + skipped),
                 floats_at(gains.after + skipped), gains.width, gains.at_least_zero);
    } else {
      add_halves(gains, row, gains.before + skipped, gains.after + skipped, kernels);
    }
  }
}

}  // namespace

void add_gains(std::span<const RowGains> gains, const Context& context) {
  for (const RowGains& each : gains) {
    if (each.count == 0 || each.width == 0) continue;
    const int64_t grain = std::max<int64_t>(1, kGainsOfTask / each.width);
    context.threads.parallel_for(each.count, grain, [&](int64_t first, int64_t last) {
      add_rows(each, first, last, context.kernels);
    });
  }
}

}  // namespace shardrec::compute::cpu
