#include "planner/work.h"

#include <algorithm>
#include <cmath>

#include "core/tensor.h"

namespace shardrec::planner {
namespace {

using compute::MemoryAccess;
using compute::MemoryProfile;

constexpr double kUsualRate = 10;  // GB/s
constexpr double kMost = 1e12;     // a second per sample: sums of a million tables stay in 63 bits

double picoseconds(const MemoryProfile& profile, MemoryAccess access, int64_t row_bytes,
                   int64_t bag_length, double bytes) {
  const compute::RowRate* rate = compute::nearest_rate(profile, access, row_bytes, bag_length);
  return 1000 * bytes / (rate != nullptr ? rate->gb_per_second : kUsualRate);
}

}  // namespace

int64_t picoseconds_per_sample(const Table& table, const Optimizer& optimizer, int64_t features,
                               int64_t cols, double bag_length, const MemoryProfile& profile) {
  const int64_t row_bytes = cols * static_cast<int64_t>(core::dtype_size(table.dtype));
  const auto row = static_cast<double>(row_bytes);
  const double sum = 4.0 * static_cast<double>(cols);
  double state = 0;
  for (const compute::OptimizerState& one : plan::states_of(optimizer.kind))
    state += one.by_row ? 4 : sum;

  const auto bags = static_cast<double>(features);
  const double ids = bags * bag_length;
  const auto bag = static_cast<int64_t>(std::clamp(bag_length, 1.0, 1e9));
  const double gather = ids * (8 + row) + bags * sum;
  const double update = ids * (8 + 2 * (row + state)) + bags * sum;
  const double time = picoseconds(profile, MemoryAccess::kGather, row_bytes, bag, gather) +
                      picoseconds(profile, MemoryAccess::kUpdate, row_bytes, bag, update);
  return static_cast<int64_t>(std::clamp(time, 1.0, kMost));
}

}  // namespace shardrec::planner
