#include "embedding/tables/shard.h"

#include <algorithm>
#include <cmath>

#include "plan/model/optimizer_step.h"

namespace shardrec::embedding {
namespace {

// The column ranges that keep a row value each.
std::vector<compute::ColumnRange> state_columns(const Layout& layout, const Part& part) {
  const plan::Optimizer& optimizer = layout.model().optimizer_of(part.table);
  if (optimizer.row_statistics == SHARDREC_ROW_STATISTICS_ROW) return {{0, part.width}};
  std::vector<compute::ColumnRange> columns;
  for (const ColumnPiece& piece : part.columns) {
    columns.push_back({piece.offset, piece.offset + piece.cols});
  }
  return columns;
}

const plan::Table& table_of(const Layout& layout, const Part& part) {
  return layout.model().tables[static_cast<size_t>(part.table)];
}

// A model has at most 2^58 elements, and an optimizer three floats for each: below 2^62 bytes.
size_t weight_bytes(const Layout& layout, const Part& part) {
  return static_cast<size_t>(part.rows) * static_cast<size_t>(part.width) *
         compute::element_bytes(element_of(table_of(layout, part).dtype));
}

size_t state_floats_per_row(const Layout& layout, const Part& part) {
  const compute::StateNeeds needs =
      compute::state_needs(plan::kind_of(layout.model().optimizer_of(part.table).kind));
  return static_cast<size_t>(needs.matrices) * static_cast<size_t>(part.width) +
         static_cast<size_t>(needs.row_values) * state_columns(layout, part).size();
}

size_t state_bytes(const Layout& layout, const Part& part) {
  return static_cast<size_t>(part.rows) * state_floats_per_row(layout, part) * sizeof(float);
}

}  // namespace

size_t shard_with_weights(const Layout& layout, std::span<const Shard> shards, const Part& part) {
  const auto has_rows = [&](const Shard& shard) {
    const Part& other = layout.parts()[static_cast<size_t>(shard.part())];
    return other.use == PartUse::kLookups && other.table == part.table &&
           other.column_cut == part.column_cut && other.row <= part.row &&
           part.row + part.rows <= other.row + other.rows;
  };
  return static_cast<size_t>(std::ranges::find_if(shards, has_rows) - shards.begin());
}

Shard::Shard(const Layout& layout, int32_t part, compute::Memory& memory,
             std::span<const Shard> others)
    : part_(part) {
  const Part& description = layout.parts()[static_cast<size_t>(part)];
  table_ = description.table;
  first_row_ = description.row;
  rows_ = description.rows;
  width_ = description.width;
  element_ = element_of(table_of(layout, description).dtype);
  columns_ = state_columns(layout, description);
  for (const ColumnPiece& piece : description.columns) {
    column_map_.push_back({piece.offset, piece.col, piece.cols});
  }
  if (description.use == PartUse::kUpdates) {
    const Shard& other = others[shard_with_weights(layout, others, description)];
    const auto rows_before = static_cast<size_t>(first_row_ - other.first_row_);
    weight_data_ = other.weight_data_ + rows_before * row_bytes();
  } else {
    weights_ = memory.allocate_zeros(weight_bytes(layout, description));
    weight_data_ = weights_->data;
  }
  if (description.use == PartUse::kLookups) return;
  state_memory_ = memory.allocate_zeros(state_bytes(layout, description));
  const compute::StateNeeds needs =
      compute::state_needs(plan::kind_of(layout.model().optimizer_of(table_).kind));
  auto* state = static_cast<float*>(static_cast<void*>(state_memory_->data));
  for (int m = 0; m < needs.matrices; ++m) {
    matrices_.push_back(state);
    state += rows_ * width_;
  }
  for (size_t v = 0; v < static_cast<size_t>(needs.row_values) * columns_.size(); ++v) {
    row_values_.push_back(state);
    state += rows_;
  }
}

std::vector<Sheet> Shard::sheets() const {
  const auto width = static_cast<size_t>(width_);
  std::vector<Sheet> sheets = {{weight_data_, element_, width}};
  const auto add = [&](float* data, size_t columns) {
    sheets.push_back(
        {static_cast<std::byte*>(static_cast<void*>(data)), compute::Element::kFloat32, columns});
  };
  for (float* matrix : matrices_) add(matrix, width);
  for (float* values : row_values_) add(values, 1);
  return sheets;
}

void Shard::describe(compute::RowUpdate& job) const {
  job.element = element_;
  job.stride = static_cast<size_t>(width_);
  job.width = width_;
  job.first_row = first_row_;
  job.column_map = column_map_.data();
  job.column_maps = static_cast<int>(column_map_.size());
  job.matrices = matrices_.data();
  job.state = row_values_.data();
  job.columns = columns_.data();
  job.statistics = static_cast<int>(columns_.size());
}

uint64_t Shard::bytes_of(const Layout& layout, int32_t part) {
  const Part& description = layout.parts()[static_cast<size_t>(part)];
  return (description.use == PartUse::kUpdates ? 0 : weight_bytes(layout, description)) +
         (description.use == PartUse::kLookups ? 0 : state_bytes(layout, description));
}

void Shard::fill(const Layout& layout, int64_t seed, compute::Backend& backend) {
  if (borrows_weights()) return;
  const Part& part = layout.parts()[static_cast<size_t>(part_)];
  const plan::Table& table = table_of(layout, part);
  if (table.init == SHARDREC_INIT_ZEROS) return;
  const double bound = std::sqrt(1.0 / static_cast<double>(table.rows));
  backend.transfer().fill({.data = weights(),
                           .element = element_,
                           .rows = rows_,
                           .width = width_,
                           .first_row = first_row_,
                           .columns = column_map_,
                           .seed = seed,
                           .table = table.name,
                           .low = static_cast<float>(table.init_min.value_or(-bound)),
                           .high = static_cast<float>(table.init_max.value_or(bound))});
}

std::vector<size_t> shards_of_blocks(const Layout& layout) {
  const auto parts = layout.parts_of(layout.rank());
  std::vector<size_t> shards;
  for (const Block& block : layout.blocks_of(layout.rank())) {
    const auto part = std::find(parts.begin(), parts.end(), block.part);
    shards.push_back(static_cast<size_t>(part - parts.begin()));
  }
  return shards;
}

std::vector<compute::ColumnRange> adjacent_columns(const Part& part) {
  std::vector<compute::ColumnRange> ranges;
  int64_t end = -1;  // column of the table behind the last range
  for (const ColumnPiece& piece : part.columns) {
    if (piece.col == end) {
      ranges.back().end += piece.cols;
    } else {
      ranges.push_back({piece.offset, piece.offset + piece.cols});
    }
    end = piece.col + piece.cols;
  }
  return ranges;
}

std::vector<compute::ColumnRange> shared_statistic_ranges(const Layout& layout, int32_t part) {
  const Part& description = layout.parts()[static_cast<size_t>(part)];
  const plan::Optimizer& optimizer = layout.model().optimizer_of(description.table);
  if (!layout.updates(description) || optimizer.row_statistics != SHARDREC_ROW_STATISTICS_ROW ||
      !layout.table(description.table).cut_by_columns) {
    return {};
  }
  return adjacent_columns(description);
}

}  // namespace shardrec::embedding
