#include "compute/cpu/slots/row_totals.h"

#include <algorithm>

namespace shardrec::compute::cpu {
namespace {

constexpr int64_t kGrainRows = 4096;

// Rows [first, last) of the totals.
void add(const RowTotals& totals, int64_t first, int64_t last) {
  const auto values = static_cast<size_t>(totals.values);
  std::fill_n(totals.out + first * totals.values, (last - first) * totals.values, 0.0F);
  for (const RowAddend& addend : totals.addends) {
    const int64_t begin = std::max(first, addend.first);
    const int64_t end = std::min(last, addend.last);
    if (begin >= end) continue;
    float* const to = totals.out + begin * totals.values;
    const float* const from =
        addend.sums + static_cast<size_t>(begin - addend.first) * addend.stride;
    const auto rows = static_cast<size_t>(end - begin);
    if (addend.stride == values) {
      for (size_t i = 0; i < rows * values; ++i) to[i] += from[i];
      continue;
    }
    for (size_t r = 0; r < rows; ++r) {
      for (size_t k = 0; k < values; ++k) to[r * values + k] += from[r * addend.stride + k];
    }
  }
}

}  // namespace

void add_row_totals(std::span<const RowTotals> shards, const Context& context) {
  for (const RowTotals& totals : shards) {
    context.threads.parallel_for(totals.rows, kGrainRows,
                                 [&](int64_t first, int64_t last) { add(totals, first, last); });
  }
}

}  // namespace shardrec::compute::cpu
