#include "embedding/rows/row_values.h"

#include <algorithm>

#include "plan/model/names.h"

namespace shardrec::embedding {
namespace {

std::byte* bytes_of(float* data) { return static_cast<std::byte*>(static_cast<void*>(data)); }

size_t shard_of(const Collection& collection, int32_t part) {
  const auto own = collection.layout().parts_of(collection.layout().rank());
  return static_cast<size_t>(std::lower_bound(own.begin(), own.end(), part) - own.begin());
}

// Calls move(rows, how many were moved before) for rows in pieces of bounded size.
template <class Move>
void in_pieces(const RowNumbers& rows, size_t row_bytes, Move move) {
  const int64_t most = compute::rows_at_once(row_bytes);
  for (int64_t done = 0; done < rows.count; done += most) {
    move(rows.part(done, std::min(most, rows.count - done)), done);
  }
}

// Columns of some rows, in a message and in the caller's matrix.
struct Run {
  size_t bytes = 0;   // before them in the message
  size_t stride = 0;  // elements between rows there
  compute::RowTarget columns;
  int64_t rows = 0;
  int64_t cols = 0;
  bool spread = false;  // in the message one element per row stands for all columns
};

// Has the back end do what transfer_of(run) says for all runs, in pieces of bounded size.
template <class TransferOf>
void convert_rows(compute::Backend& backend, const Part& part, const Values& values,
                  const RowNumbers& rows, const core::Matrix& matrix, TransferOf transfer_of) {
  const int64_t width = message_width(part, values);
  std::vector<compute::RowTransfer> transfers;
  in_pieces(
      rows, static_cast<size_t>(matrix.cols) * sizeof(float),
      [&](const RowNumbers& piece, int64_t before) {
        transfers.clear();
        for_each_run(part, values, [&](int64_t col, int64_t offset, int64_t cols, bool spread) {
          transfers.push_back(
              transfer_of(Run{.bytes = values.bytes(width * before + offset),
                              .stride = static_cast<size_t>(width),
                              .columns = {matrix.row(piece.first) + col, compute::Element::kFloat32,
                                          static_cast<size_t>(matrix.stride), piece.list},
                              .rows = piece.count,
                              .cols = cols,
                              .spread = spread}));
        });
        backend.transfer().convert_on_host(transfers);
      });
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

bool concerns(const Layout& layout, const Part& part, const Values& values, RowsWay way,
              int caller) {
  if (part.use == PartUse::kLookups) {
    return values.state < 0 && (way == RowsWay::kWrite || layout.answers(part, caller));
  }
  if (part.use == PartUse::kUpdates && values.state < 0) return false;
  if (way == RowsWay::kWrite) return layout.takes_from(part, caller);
  if (part.use == PartUse::kAll && !layout.answers(part, caller)) return false;
  return !values.by_row || values.per_box || part.columns[0].col == 0;
}

void widen_rows(compute::Backend& backend, const Part& part, const Values& values,
                const std::byte* from, const RowNumbers& rows, const core::Matrix& out) {
  convert_rows(backend, part, values, rows, out, [&](const Run& run) {
    return compute::RowTransfer{.from = {from + run.bytes, values.element, run.stride},
                                .to = run.columns,
                                .rows = run.rows,
                                .width = run.cols,
                                .spread = run.spread};
  });
}

void narrow_rows(compute::Backend& backend, const Part& part, const Values& values,
                 const core::Matrix& in, const RowNumbers& rows, std::byte* to) {
  convert_rows(backend, part, values, rows, in, [&](const Run& run) {
    const compute::RowTarget& columns = run.columns;
    return compute::RowTransfer{
        .from = {columns.data, columns.element, columns.stride, columns.numbers},
        .to = {to + run.bytes, values.element, run.stride},
        .rows = run.rows,
        .width = run.spread ? 1 : run.cols};
  });
}

StoredRows::StoredRows(Collection& collection, int32_t part, const Values& values)
    : backend_(collection.backend()),
      snapshot_(collection.snapshot()),
      changed_(collection.changed_rows()),
      shard_(shard_of(collection, part)),
      element_(values.element) {
  Shard& shard = collection.shards()[shard_];
  if (!values.by_row) {
    std::byte* const stored = values.state < 0
                                  ? shard.weights()
                                  : bytes_of(shard.matrix(static_cast<size_t>(values.state)));
    columns_.push_back({stored, static_cast<size_t>(shard.width()), shard.width(), 0});
    message_width_ = static_cast<size_t>(shard.width());
    return;
  }
  message_width_ = shard.columns().size();
  for (size_t range = 0; range < message_width_; ++range) {
    columns_.push_back({bytes_of(shard.row_values(static_cast<size_t>(values.state), range)), 1, 1,
                        static_cast<int64_t>(range)});
  }
}

void StoredRows::copy_out(const RowNumbers& rows, std::byte* to) {
  const size_t bytes = compute::element_bytes(element_);
  in_pieces(rows, message_width_ * bytes, [&](const RowNumbers& piece, int64_t before) {
    transfers_.clear();
    for (const Column& column : columns_) {
      const size_t first = static_cast<size_t>(piece.first) * column.stride;
      const size_t at =
          static_cast<size_t>(before) * message_width_ + static_cast<size_t>(column.offset);
      transfers_.push_back(
          {.from = {column.first + first * bytes, element_, column.stride, piece.list},
           .to = {to + at * bytes, element_, message_width_},
           .rows = piece.count,
           .width = column.width});
    }
    backend_.transfer().copy_to_host(transfers_);
  });
}

void StoredRows::copy_in(const RowNumbers& rows, const std::byte* from) {
  const RowChange change(snapshot_);
  if (rows.list != nullptr) {
    const std::span<const int64_t> list(rows.list, static_cast<size_t>(rows.count));
    change.keep(shard_, list);
    changed_.add(shard_, list);
  } else {
    change.keep_range(shard_, rows.first, rows.count);
    changed_.add_range(shard_, rows.first, rows.count);
  }
  const size_t bytes = compute::element_bytes(element_);
  in_pieces(rows, message_width_ * bytes, [&](const RowNumbers& piece, int64_t before) {
    transfers_.clear();
    for (const Column& column : columns_) {
      const size_t first = static_cast<size_t>(piece.first) * column.stride;
      const size_t at =
          static_cast<size_t>(before) * message_width_ + static_cast<size_t>(column.offset);
      transfers_.push_back(
          {.from = {from + at * bytes, element_, message_width_},
           .to = {column.first + first * bytes, element_, column.stride, piece.list},
           .rows = piece.count,
           .width = column.width});
    }
    backend_.transfer().copy_from_host(transfers_);
  });
}

}  // namespace shardrec::embedding
