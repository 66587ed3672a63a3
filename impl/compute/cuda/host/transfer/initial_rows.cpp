#include "compute/cuda/host/transfer/initial_rows.h"

#include "compute/math/initial_values.h"

namespace shardrec::compute::cuda::host {

void fill(const InitialRows& rows, Stream& stream) {
  const math::UniformValues values{
      .key = math::table_key(static_cast<uint64_t>(rows.seed), rows.table),
      .low = rows.low,
      .high = rows.high};
  const math::UniformRange range = math::uniform_range(values);
  for (const ColumnMap& map : rows.columns) {
    const shardrec_cuda_initial_rows job{
        .data = static_cast<std::byte*>(rows.data) +
                static_cast<size_t>(map.offset) * element_bytes(rows.element),
        .stride = rows.width,
        .rows = rows.rows,
        .first_row = rows.first_row,
        .column = map.column,
        .columns = map.count,
        .element = static_cast<int32_t>(rows.element),
        .last = range.last,
        .low = range.low,
        .span = range.span,
        .key = values.key};
    require(table().fill_rows(stream.handle(), &job), "fill rows on device ", stream.device());
  }
}

}  // namespace shardrec::compute::cuda::host
