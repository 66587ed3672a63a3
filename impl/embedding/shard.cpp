#include "embedding/shard.h"

#include <algorithm>
#include <cmath>

#include "compute/cpu/init.h"

namespace shardrec::embedding {
namespace {

bool has_row_state(const plan::Optimizer& optimizer) {
  return optimizer.kind == SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD;
}

// The column ranges that keep a state each.
std::vector<compute::ColumnRange> state_columns(const Layout& layout, const Part& part) {
  const plan::Optimizer& optimizer = layout.model().optimizer;
  if (!has_row_state(optimizer)) return {};
  if (optimizer.row_statistics == SHARDREC_ROW_STATISTICS_ROW) return {{0, part.width}};
  std::vector<compute::ColumnRange> columns;
  for (const ColumnPiece& piece : part.columns) {
    columns.push_back({piece.offset, piece.offset + piece.cols});
  }
  return columns;
}

size_t checked_bytes(int64_t rows, int64_t columns) {
  // rows <= 2^40, columns <= 2^16 + one state per column: below 2^60 bytes.
  return static_cast<size_t>(rows) * static_cast<size_t>(columns) * sizeof(float);
}

}  // namespace

Shard::Shard(const Layout& layout, int32_t part) : part_(part) {
  const Part& description = layout.parts()[static_cast<size_t>(part)];
  rows_ = description.rows;
  width_ = description.width;
  columns_ = state_columns(layout, description);
  statistic_is_shared_ = !shared_statistic_ranges(layout, part).empty();
  weights_ = core::Pages(checked_bytes(rows_, width_));
  state_memory_ = core::Pages(checked_bytes(rows_, static_cast<int64_t>(columns_.size())));
  auto* state = static_cast<float*>(static_cast<void*>(state_memory_.data()));
  for (size_t s = 0; s < columns_.size(); ++s) {
    state_.push_back(state + s * static_cast<size_t>(rows_));
  }
}

uint64_t Shard::bytes_of(const Layout& layout, int32_t part) {
  const Part& description = layout.parts()[static_cast<size_t>(part)];
  return checked_bytes(
      description.rows,
      description.width + static_cast<int64_t>(state_columns(layout, description).size()));
}

void Shard::fill(const Layout& layout, int64_t seed, core::Threads& threads) {
  const Part& part = layout.parts()[static_cast<size_t>(part_)];
  const plan::Table& table = layout.model().tables[static_cast<size_t>(part.table)];
  if (table.init == SHARDREC_INIT_ZEROS) return;
  const double bound = std::sqrt(1.0 / static_cast<double>(table.rows));
  const compute::UniformValues values{
      .key = compute::table_key(static_cast<uint64_t>(seed), table.name),
      .low = static_cast<float>(table.init_min.value_or(-bound)),
      .high = static_cast<float>(table.init_max.value_or(bound))};
  const int64_t grain = std::max<int64_t>(1, (256 << 10) / width_);
  threads.parallel_for(rows_, grain, [&](int64_t first, int64_t last) {
    for (const ColumnPiece& piece : part.columns) {
      compute::fill_uniform(values, part.row + first, last - first, piece.col, piece.cols,
                            weights() + first * width_ + piece.offset, static_cast<size_t>(width_));
    }
  });
}

std::vector<compute::ColumnRange> shared_statistic_ranges(const Layout& layout, int32_t part) {
  const plan::Optimizer& optimizer = layout.model().optimizer;
  const Part& description = layout.parts()[static_cast<size_t>(part)];
  if (!has_row_state(optimizer) || optimizer.row_statistics != SHARDREC_ROW_STATISTICS_ROW ||
      !layout.table(description.table).cut_by_columns) {
    return {};
  }
  std::vector<compute::ColumnRange> ranges;
  int64_t end = -1;  // column of the table behind the last range
  for (const ColumnPiece& piece : description.columns) {
    if (piece.col == end) {
      ranges.back().end += piece.cols;
    } else {
      ranges.push_back({piece.offset, piece.offset + piece.cols});
    }
    end = piece.col + piece.cols;
  }
  return ranges;
}

}  // namespace shardrec::embedding
