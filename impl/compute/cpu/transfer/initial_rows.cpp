#include "compute/cpu/transfer/initial_rows.h"

#include <algorithm>
#include <array>

#include "compute/math/initial_values.h"

namespace shardrec::compute::cpu {
namespace {

constexpr int64_t kGrainElements = 256 << 10;

void fill_floats(const InitialRows& part, const math::UniformValues& values, int64_t first,
                 int64_t last) {
  auto* rows = static_cast<float*>(part.data);
  for (const ColumnMap& map : part.columns) {
    math::fill_uniform(values, part.first_row + first, last - first, map.column, map.count,
                       rows + first * part.width + map.offset, static_cast<size_t>(part.width));
  }
}

void fill_rounded(const InitialRows& part, const math::UniformValues& values, int64_t first,
                  int64_t last, const Kernels& kernels) {
  std::array<float, 1024> block;  // of one row, before it is rounded
  const size_t bytes = element_bytes(part.element);
  for (int64_t row = first; row < last; ++row) {
    std::byte* out =
        static_cast<std::byte*>(part.data) + static_cast<size_t>(row * part.width) * bytes;
    for (const ColumnMap& map : part.columns) {
      for (int64_t done = 0; done < map.count; done += std::ssize(block)) {
        const int64_t count = std::min<int64_t>(std::ssize(block), map.count - done);
        math::fill_uniform(values, part.first_row + row, 1, map.column + done, count, block.data(),
                           block.size());
        kernels.narrow(block.data(), part.element,
                       out + static_cast<size_t>(map.offset + done) * bytes, count);
      }
    }
  }
}

}  // namespace

void fill(const InitialRows& rows, const Context& context) {
  const math::UniformValues values{
      .key = math::table_key(static_cast<uint64_t>(rows.seed), rows.table),
      .low = rows.low,
      .high = rows.high};
  const int64_t grain = std::max<int64_t>(1, kGrainElements / rows.width);
  context.threads.parallel_for(rows.rows, grain, [&](int64_t first, int64_t last) {
    if (rows.element == Element::kFloat32) {
      fill_floats(rows, values, first, last);
    } else {
      fill_rounded(rows, values, first, last, context.kernels);
    }
  });
}

}  // namespace shardrec::compute::cpu
