#include "serving/row_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compute/cpu/kernels/dispatch.h"
#include "core/error.h"

namespace shardrec::serving {

RowEncoder::RowEncoder(const plan::Table& table)
    : table_(table),
      element_(compute::element_of(table.dtype)),
      floats_(static_cast<size_t>(table.dim)),
      codes_(static_cast<size_t>(table.dim)) {}

void RowEncoder::encode(const std::byte* from, int64_t row, std::byte* to) {
  const compute::Kernels& kernels = compute::cpu_kernels();
  kernels.widen(from, element_, floats_.data(), table_.dim);
  const compute::RowScale scale = kernels.quantize(floats_.data(), codes_.data(), table_.dim);
  // Rows that have no scale because they are not finite are NaN when they are looked up.
  if (std::isnan(scale.scale) &&
      std::ranges::all_of(floats_, [](float x) { return std::isfinite(x); })) {
    refuse(row);
  }
  std::memcpy(to, codes_.data(), codes_.size());
  std::memcpy(to + codes_.size(), &scale, sizeof scale);
}

void RowEncoder::refuse(int64_t row) const {
  core::fail(SHARDREC_UNSUPPORTED,
             core::sentence("row ", row, " of table \"", table_.name,
                            "\" spans a range that is no finite float32: it cannot be served in 8 "
                            "bits (option SERVED_TABLES)"),
             {.position = row, .table = table_.name});
}

}  // namespace shardrec::serving
