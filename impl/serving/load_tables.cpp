#include "serving/load_tables.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "checkpoint/read/match.h"
#include "core/error.h"
#include "serving/row_encoder.h"
#include "serving/staged_rows.h"

namespace shardrec::serving {
namespace {

using checkpoint::ManifestTensor;

class TableReader {
 public:
  TableReader(const checkpoint::Opened& opened, core::Control* control,
              core::Environment& environment)
      : opened_(opened),
        control_(control),
        environment_(environment),
        files_(opened, environment) {}

  ServedTable in_memory(const plan::Table& table, std::span<const ManifestTensor* const> boxes) {
    ServedTable served = describe(table);
    const size_t row_bytes =
        static_cast<size_t>(table.dim) * compute::element_bytes(served.element);
    served.memory =
        compute::cpu_memory()->allocate_zeros(static_cast<size_t>(table.rows) * row_bytes);
    served.slices = {{.col = 0,
                      .cols = table.dim,
                      .ranges = {{.data = served.memory->data, .stride = table.dim}}}};
    for (const ManifestTensor* box : boxes) {
      for_each_chunk(*box, [&](int64_t row, int64_t rows, std::span<const std::byte> chunk) {
        const auto width = static_cast<int64_t>(chunk.size()) / rows;
        checkpoint::copy_rows(
            chunk.data(), width,
            served.memory->data + static_cast<size_t>(row) * row_bytes +
                static_cast<size_t>(box->cells.col) * compute::element_bytes(served.element),
            static_cast<int64_t>(row_bytes), rows, width);
      });
    }
    return served;
  }

  // In place of tables that no kernel can read where they lie (elements at odd addresses, which
  // the format allows) there are copies.
  ServedTable mapped(const plan::Table& table, std::span<const ManifestTensor* const> boxes) {
    ServedTable served = describe(table);
    for (const ManifestTensor* box : boxes) {
      if (static_cast<size_t>(box->stored.offset) % compute::element_bytes(served.element) != 0) {
        return in_memory(table, boxes);
      }
    }
    // A column at which any box begins is where a slice does.
    std::map<int64_t, ColumnSlice> slices;
    for (const ManifestTensor* box : boxes) slices[box->cells.col].col = box->cells.col;
    for (auto slice = slices.begin(); slice != slices.end(); ++slice) {
      const auto next = std::next(slice);
      slice->second.cols = (next == slices.end() ? table.dim : next->first) - slice->first;
    }
    for (const ManifestTensor* box : boxes) {
      for_each_chunk(*box, [](int64_t, int64_t, std::span<const std::byte>) {});
      const std::byte* data = map_file(*box, served);
      for (auto& [col, slice] : slices) {
        if (col < box->cells.col || col >= box->cells.end_col()) continue;
        slice.ranges.push_back({.first = box->cells.row,
                                .data = data + static_cast<size_t>(col - box->cells.col) *
                                                   compute::element_bytes(served.element),
                                .stride = box->cells.cols});
      }
    }
    for (auto& [col, slice] : slices) {
      std::sort(slice.ranges.begin(), slice.ranges.end(),
                [](const RowRange& a, const RowRange& b) { return a.first < b.first; });
      served.slices.push_back(std::move(slice));
    }
    return served;
  }

  ServedTable coded(const plan::Table& table, std::span<const ManifestTensor* const> boxes) {
    // The range of a row is known when all its columns are there.
    if (!std::all_of(boxes.begin(), boxes.end(),
                     [&](const ManifestTensor* box) { return box->cells.cols == table.dim; })) {
      return coded(table, in_memory(table, boxes));
    }
    RowEncoder encoder(table);
    ServedTable served = describe_coded(table, encoder);
    for (const ManifestTensor* box : boxes) {
      for_each_chunk(*box, [&](int64_t row, int64_t rows, std::span<const std::byte> chunk) {
        encode_rows(encoder, chunk.data(), row, rows, served);
      });
    }
    return served;
  }

  static ServedTable coded(const plan::Table& table, const ServedTable& elements) {
    RowEncoder encoder(table);
    ServedTable served = describe_coded(table, encoder);
    encode_rows(encoder, elements.memory->data, 0, table.rows, served);
    return served;
  }

 private:
  static ServedTable describe(const plan::Table& table) {
    ServedTable served;
    served.rows = table.rows;
    served.dim = table.dim;
    served.out_of_range = table.out_of_range;
    served.element = compute::element_of(table.dtype);
    return served;
  }

  // Calls take(first row, rows, bytes) for the chunks of a box, each verified.
  template <class Take>
  void for_each_chunk(const ManifestTensor& box, Take take) {
    const int64_t row_bytes = box.layout.row_bytes(box.cells.cols);
    for (int64_t number = 0; number * box.chunk_rows < box.cells.rows; ++number) {
      const int64_t first = number * box.chunk_rows;
      const int64_t rows = std::min(box.chunk_rows, box.cells.rows - first);
      const auto chunk = buffer_.resize_as<std::byte>(static_cast<size_t>(rows * row_bytes));
      files_.read(box.stored, first * row_bytes, chunk);
      files_.check_chunk(box, number, chunk);
      take(box.cells.row + first, rows, std::span<const std::byte>(chunk));
      if (control_ != nullptr) control_->advance(rows * row_bytes);
    }
  }

  const std::byte* map_file(const ManifestTensor& box, ServedTable& served) {
    std::shared_ptr<core::MappedFile>& file = maps_[box.stored.file];
    if (file == nullptr) {
      file =
          environment_.map(files_.path_of(box.stored), opened_.manifest.file_of(box.stored).bytes);
    }
    served.files.push_back(file);
    return file->bytes().data() + box.stored.offset;
  }

  static ServedTable describe_coded(const plan::Table& table, const RowEncoder& encoder) {
    ServedTable served = describe(table);
    served.coded = true;
    const size_t stride = encoder.row_bytes();
    served.memory = compute::cpu_memory()->allocate_zeros(static_cast<size_t>(table.rows) * stride);
    served.slices = {
        {.col = 0,
         .cols = table.dim,
         .ranges = {{.data = served.memory->data, .stride = static_cast<int64_t>(stride)}}}};
    return served;
  }

  // Rows [first, first + rows) of the table.
  static void encode_rows(RowEncoder& encoder, const std::byte* from, int64_t first, int64_t rows,
                          const ServedTable& to) {
    const size_t bytes = static_cast<size_t>(to.dim) * compute::element_bytes(to.element);
    for (int64_t row = first; row < first + rows; ++row, from += bytes) {
      encoder.encode(from, row, to.memory->data + static_cast<size_t>(row) * encoder.row_bytes());
    }
  }

  const checkpoint::Opened& opened_;
  core::Control* control_;
  core::Environment& environment_;
  checkpoint::Files files_;
  compute::Buffer buffer_{compute::cpu_memory()};
  std::map<int32_t, std::shared_ptr<core::MappedFile>> maps_;  // by file
};

// The tables that the checkpoint's model names are in the checkpoint, or it was not written so.
checkpoint::MatchedCollection match_own(const checkpoint::Opened& opened, int32_t collection,
                                        const plan::Model& model) {
  try {
    // Deltas need not have the states, which nobody reads here.
    return checkpoint::match(
        opened,
        {.name = opened.manifest.collections[static_cast<size_t>(collection)].name,
         .model = &model,
         .tables = checkpoint::manifest_tables(model)},
        {.others = {.state = checkpoint::StateRule::kBase}});
  } catch (const core::Error& error) {
    core::fail(SHARDREC_CORRUPT_DATA,
               core::sentence("the checkpoint ", opened.directory,
                              " does not hold what its model says: ", error.sentence()),
               {.path = opened.directory});
  }
}

}  // namespace

int64_t bytes_of_tables(const checkpoint::Opened& opened, int32_t collection) {
  int64_t bytes = bytes_of_changes(opened.deltas(), collection);
  for (const ManifestTensor& tensor : opened.whole().manifest.tensors) {
    if (is_served(tensor, collection)) bytes += bytes_of(tensor);
  }
  return bytes;
}

std::optional<std::vector<ServedTable>> stage_tables(
    const checkpoint::Opened& opened, std::span<const checkpoint::Opened* const> deltas,
    int32_t collection, const plan::Model& model, const std::vector<ServedTable>& now,
    core::Control* control, core::Environment& environment) {
  const checkpoint::MatchedCollection matched = match_own(opened, collection, model);
  DeltaReader changes(deltas, collection, control, environment);
  std::vector<ServedTable> tables = now;
  for (size_t t = 0; t < tables.size(); ++t) {
    const int32_t saved = matched.tables[t].saved;
    tables[t].staged = nullptr;
    tables[t].out_of_range = model.tables[t].out_of_range;
    if (!changes.changes(saved)) continue;
    if (now[t].memory == nullptr) return std::nullopt;
    DeltaReader::Changed changed = changes.changed(saved, model.tables[t], now[t].coded);
    if (!changed.whole) return std::nullopt;
    tables[t].staged = changes.stage(saved, model.tables[t], now[t], std::move(changed));
  }
  return tables;
}

std::vector<ServedTable> load_tables(const checkpoint::Opened& opened, int32_t collection,
                                     const plan::Model& model, shardrec_served_tables kind,
                                     core::Control* control, core::Environment& environment) {
  const checkpoint::MatchedCollection matched = match_own(opened, collection, model);
  const checkpoint::Opened& whole = opened.whole();
  const std::vector<const checkpoint::Opened*> deltas = opened.deltas();
  TableReader reader(whole, control, environment);
  DeltaReader changes(deltas, collection, control, environment);
  std::vector<ServedTable> tables;
  for (size_t t = 0; t < model.tables.size(); ++t) {
    const plan::Table& table = model.tables[t];
    const int32_t saved = matched.tables[t].saved;
    std::vector<const ManifestTensor*> boxes;
    for (const ManifestTensor& tensor : whole.manifest.tensors) {
      if (is_served(tensor, collection) && tensor.table == saved) boxes.push_back(&tensor);
    }
    const bool coded = kind == SHARDREC_SERVED_TABLES_INT8;
    if (!changes.changes(saved)) {
      tables.push_back(kind == SHARDREC_SERVED_TABLES_MAPPED ? reader.mapped(table, boxes)
                       : coded                               ? reader.coded(table, boxes)
                                                             : reader.in_memory(table, boxes));
      continue;
    }
    DeltaReader::Changed changed = changes.changed(saved, table, coded);
    const bool rows_whole = changed.whole;
    ServedTable& served = tables.emplace_back(coded && rows_whole ? reader.coded(table, boxes)
                                                                  : reader.in_memory(table, boxes));
    changes.stage(saved, table, served, std::move(changed))->write_to(served);
    if (coded && !rows_whole) served = TableReader::coded(table, served);
  }
  return tables;
}

}  // namespace shardrec::serving
