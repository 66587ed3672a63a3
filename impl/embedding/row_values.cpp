#include "embedding/row_values.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "plan/names.h"

namespace shardrec::embedding {
namespace {

std::byte* bytes_of(float* data) { return static_cast<std::byte*>(static_cast<void*>(data)); }

Shard& shard_of(Collection& collection, int32_t part) {
  const auto own = collection.layout().parts_of(collection.layout().rank());
  const auto at = std::lower_bound(own.begin(), own.end(), part) - own.begin();
  return collection.shards()[static_cast<size_t>(at)];
}

// Calls move(bytes of the shard, offset in the message, count) for rows of a part.
template <class Move>
void for_each_stored(Shard& shard, const Values& values, int64_t width, int64_t first,
                     int64_t count, Move move) {
  if (!values.by_row) {
    std::byte* stored = values.state < 0
                            ? shard.weights()
                            : bytes_of(shard.matrix(static_cast<size_t>(values.state)));
    move(stored + values.bytes(first * width), 0, values.bytes(count * width));
    return;
  }
  const size_t ranges = shard.columns().size();
  for (int64_t r = 0; r < count; ++r) {
    for (size_t range = 0; range < ranges; ++range) {
      float* value = shard.row_values(static_cast<size_t>(values.state), range) + first + r;
      move(bytes_of(value), (static_cast<size_t>(r) * ranges + range) * sizeof(float),
           sizeof(float));
    }
  }
}

}  // namespace

Values values_of(const plan::Model& model, int32_t table, int32_t what) {
  const plan::Optimizer& optimizer = model.optimizer_of(table);
  Values values;
  values.state = what - SHARDREC_TABLE_STATE;
  if (values.state < 0) {
    values.element = element_of(model.tables[static_cast<size_t>(table)].dtype);
    return values;
  }
  values.by_row = plan::states_of(optimizer.kind)[static_cast<size_t>(values.state)].by_row;
  values.per_box = optimizer.row_statistics == SHARDREC_ROW_STATISTICS_SHARD;
  return values;
}

bool values_exist(const plan::Model& model, int32_t table, int32_t what) {
  return what >= SHARDREC_TABLE_WEIGHTS &&
         what <= static_cast<int32_t>(plan::states_of(model.optimizer_of(table).kind).size());
}

int64_t message_width(const Part& part, const Values& values) {
  if (!values.by_row) return part.width;
  return values.per_box ? std::ssize(part.columns) : 1;
}

bool sends(const Layout& layout, const Part& part, const Values& values, int reader) {
  if (!layout.answers(part, reader)) return false;
  return !values.by_row || values.per_box || part.columns[0].col == 0;
}

void widen_row(const compute::Kernels& kernels, const Part& part, const Values& values,
               const std::byte* from, float* row) {
  for_each_run(part, values, [&](int64_t col, int64_t offset, int64_t cols, bool spread) {
    kernels.widen(from + values.bytes(offset), values.element, row + col, spread ? 1 : cols);
    if (spread) std::fill_n(row + col + 1, cols - 1, row[col]);
  });
}

void narrow_row(const compute::Kernels& kernels, const Part& part, const Values& values,
                const float* row, std::byte* to) {
  for_each_run(part, values, [&](int64_t col, int64_t offset, int64_t cols, bool spread) {
    kernels.narrow(row + col, values.element, to + values.bytes(offset), spread ? 1 : cols);
  });
}

StoredRows::StoredRows(Collection& collection, int32_t part, const Values& values)
    : shard_(shard_of(collection, part)),
      values_(values),
      width_(collection.layout().parts()[static_cast<size_t>(part)].width) {}

void StoredRows::copy_out(int64_t first, int64_t count, std::byte* to) const {
  for_each_stored(shard_, values_, width_, first, count,
                  [&](const std::byte* stored, size_t at, size_t bytes) {
                    std::memcpy(to + at, stored, bytes);
                  });
}

void StoredRows::copy_in(int64_t first, int64_t count, const std::byte* from) const {
  for_each_stored(
      shard_, values_, width_, first, count,
      [&](std::byte* stored, size_t at, size_t bytes) { std::memcpy(stored, from + at, bytes); });
}

void throw_malformed(size_t rank, const char* operation) {
  core::fail(SHARDREC_CORRUPT_DATA,
             core::sentence("rank ", rank, " sent a malformed message in ", operation),
             {.rank = static_cast<int64_t>(rank), .operation = operation});
}

}  // namespace shardrec::embedding
