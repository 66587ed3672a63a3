#include "serving/load_tables.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "checkpoint/read/match.h"
#include "compute/cpu/kernels/dispatch.h"
#include "compute/kernels.h"
#include "core/error.h"

namespace shardrec::serving {
namespace {

using checkpoint::ManifestTensor;

bool is_served(const ManifestTensor& tensor, int32_t collection) {
  return tensor.collection == collection && tensor.part == checkpoint::TablePart::kWeights;
}

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
    ServedTable served = describe(table);
    served.coded = true;
    const size_t stride = static_cast<size_t>(table.dim) + sizeof(compute::RowScale);
    served.memory = compute::cpu_memory()->allocate_zeros(static_cast<size_t>(table.rows) * stride);
    served.slices = {
        {.col = 0,
         .cols = table.dim,
         .ranges = {{.data = served.memory->data, .stride = static_cast<int64_t>(stride)}}}};
    const auto encode = [&](int64_t row, int64_t rows, const std::byte* from) {
      encode_rows(from, served.element, row, rows, table,
                  served.memory->data + static_cast<size_t>(row) * stride);
    };
    if (std::all_of(boxes.begin(), boxes.end(),
                    [&](const ManifestTensor* box) { return box->cells.cols == table.dim; })) {
      for (const ManifestTensor* box : boxes) {
        for_each_chunk(*box, [&](int64_t row, int64_t rows, std::span<const std::byte> chunk) {
          encode(row, rows, chunk.data());
        });
      }
      return served;
    }
    // The range of a row is known when all its columns are there.
    const ServedTable whole = in_memory(table, boxes);
    encode(0, table.rows, whole.memory->data);
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

  // Rows [first, first + rows) of the table.
  void encode_rows(const std::byte* from, compute::Element element, int64_t first, int64_t rows,
                   const plan::Table& table, std::byte* to) {
    const compute::Kernels& kernels = compute::cpu_kernels();
    const int64_t dim = table.dim;
    const auto columns = static_cast<size_t>(dim);
    floats_.resize(columns);
    codes_.resize(columns);
    for (int64_t row = 0; row < rows; ++row) {
      kernels.widen(from, element, floats_.data(), dim);
      const compute::RowScale scale = kernels.quantize(floats_.data(), codes_.data(), dim);
      if (std::isnan(scale.scale)) refuse_wide(table, first + row);
      std::memcpy(to, codes_.data(), columns);
      std::memcpy(to + columns, &scale, sizeof scale);
      from += columns * compute::element_bytes(element);
      to += columns + sizeof scale;
    }
  }

  // Throws UNSUPPORTED where the row that has no scale is finite; others are NaN when they are looked up.
  void refuse_wide(const plan::Table& table, int64_t row) const {
    if (!std::all_of(floats_.begin(), floats_.end(), [](float x) { return std::isfinite(x); }))
      return;
    core::fail(
        SHARDREC_UNSUPPORTED,
        core::sentence("row ", row, " of table \"", table.name,
                       "\" spans a range that is no finite float32: it cannot be served in 8 "
                       "bits (option SERVED_TABLES)"),
        {.position = row, .table = table.name});
  }

  const checkpoint::Opened& opened_;
  core::Control* control_;
  core::Environment& environment_;
  checkpoint::Files files_;
  compute::Buffer buffer_{compute::cpu_memory()};
  std::map<int32_t, std::shared_ptr<core::MappedFile>> maps_;  // by file
  std::vector<float> floats_;
  std::vector<uint8_t> codes_;
};

// The tables that the checkpoint's model names are in the checkpoint, or it was not written so.
checkpoint::MatchedCollection match_own(const checkpoint::Opened& opened, int32_t collection,
                                        const plan::Model& model) {
  try {
    return checkpoint::match(
        opened, {.name = opened.manifest.collections[static_cast<size_t>(collection)].name,
                 .model = &model,
                 .tables = checkpoint::manifest_tables(model)});
  } catch (const core::Error& error) {
    core::fail(SHARDREC_CORRUPT_DATA,
               core::sentence("the checkpoint ", opened.directory,
                              " does not hold what its model says: ", error.sentence()),
               {.path = opened.directory});
  }
}

}  // namespace

int64_t bytes_of_tables(const checkpoint::Manifest& manifest, int32_t collection) {
  int64_t bytes = 0;
  for (const ManifestTensor& tensor : manifest.tensors) {
    if (is_served(tensor, collection)) bytes += bytes_of(tensor);
  }
  return bytes;
}

std::vector<ServedTable> load_tables(const checkpoint::Opened& opened, int32_t collection,
                                     const plan::Model& model, shardrec_served_tables kind,
                                     core::Control* control, core::Environment& environment) {
  const checkpoint::MatchedCollection matched = match_own(opened, collection, model);
  TableReader reader(opened, control, environment);
  std::vector<ServedTable> tables;
  for (size_t t = 0; t < model.tables.size(); ++t) {
    std::vector<const ManifestTensor*> boxes;
    for (const ManifestTensor& tensor : opened.manifest.tensors) {
      if (is_served(tensor, collection) && tensor.table == matched.tables[t].saved) {
        boxes.push_back(&tensor);
      }
    }
    switch (kind) {
      case SHARDREC_SERVED_TABLES_MAPPED:
        tables.push_back(reader.mapped(model.tables[t], boxes));
        break;
      case SHARDREC_SERVED_TABLES_INT8:
        tables.push_back(reader.coded(model.tables[t], boxes));
        break;
      default:
        tables.push_back(reader.in_memory(model.tables[t], boxes));
    }
  }
  return tables;
}

}  // namespace shardrec::serving
