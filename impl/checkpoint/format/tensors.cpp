#include "checkpoint/format/tensors.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/error.h"
#include "core/tensor.h"
#include "plan/model/names.h"

namespace shardrec::checkpoint {

static_assert(std::endian::native == std::endian::little,
              "files are little-endian and copied as they are");

int64_t PartLayout::element_bytes() const { return static_cast<int64_t>(core::dtype_size(dtype)); }

int part_count(shardrec_optimizer optimizer) {
  return 1 + static_cast<int>(plan::states_of(optimizer).size());
}

PartLayout layout_of(shardrec_dtype table_dtype, shardrec_optimizer optimizer, TablePart part) {
  if (part == TablePart::kWeights) return {.by_row = false, .dtype = table_dtype};
  const auto states = plan::states_of(optimizer);
  const auto state = static_cast<size_t>(part) - static_cast<size_t>(TablePart::kState);
  if (state >= states.size()) {
    core::fail(SHARDREC_INTERNAL,
               core::sentence("the optimizer ", plan::name_of(optimizer), " has no state ", state));
  }
  return {.by_row = states[state].by_row, .dtype = SHARDREC_FLOAT32};
}

std::string name_of(shardrec_optimizer optimizer, TablePart part) {
  if (part == TablePart::kWeights) return "weights";
  const auto state = static_cast<size_t>(part) - static_cast<size_t>(TablePart::kState);
  return std::string("state/") + plan::states_of(optimizer)[state].name;
}

void check_box(const BoxTensor& box, const plan::Model& model) {
  bool good = box.table >= 0 && box.table < std::ssize(model.tables);
  if (good) {
    const plan::Table& table = model.tables[static_cast<size_t>(box.table)];
    good = table.cells().contains(box.cells) &&
           static_cast<int>(box.part) < part_count(model.optimizer_of(box.table).kind) &&
           box.layout == layout_of(table.dtype, model.optimizer_of(box.table).kind, box.part) &&
           box.stride >= box.layout.row_width(box.cells.cols) && box.data != nullptr;
  }
  if (!good) {
    core::fail(SHARDREC_INTERNAL,
               core::sentence("a box of table ", box.table, " for a checkpoint is malformed"));
  }
}

void for_each_chunk(const BoxTensor& box,
                    core::FunctionRef<void(std::span<const std::byte>)> take) {
  const int64_t row_bytes = box.layout.row_bytes(box.cells.cols);
  const int64_t height = rows_per_chunk(row_bytes);
  std::vector<std::byte> buffer;
  for (int64_t row = 0; row < box.cells.rows; row += height) {
    const int64_t rows = std::min(height, box.cells.rows - row);
    const std::byte* first = box.at_row(box.cells.row + row);
    const auto bytes = static_cast<size_t>(rows * row_bytes);
    if (box.reader == nullptr && box.backend == nullptr && box.compact()) {
      take({first, bytes});
      continue;
    }
    buffer.resize(bytes);
    if (box.reader != nullptr) {
      box.reader->read(row, rows, buffer.data());
    } else if (box.backend == nullptr) {
      copy_rows(first, box.stride * box.layout.element_bytes(), buffer.data(), row_bytes, rows,
                row_bytes);
    } else {
      const compute::Element element = compute::element_of(box.layout.dtype);
      const int64_t width = box.layout.row_width(box.cells.cols);
      const compute::RowTransfer transfer{
          .from = {first, element, static_cast<size_t>(box.stride)},
          .to = {buffer.data(), element, static_cast<size_t>(width)},
          .rows = rows,
          .width = width};
      box.backend->transfer().copy_to_host({&transfer, 1});
    }
    take(buffer);
  }
}

// Rows that a back end moves at once: their numbers travel, too.
constexpr size_t kMostNumbers = compute::kMostTransferred / sizeof(int64_t);

// take(rows), counted from the list's first, so many at once.
template <class Take>
void for_each_listed(const ChangedList& list, int64_t most, Take take) {
  std::vector<int64_t> rows(static_cast<size_t>(std::min(most, list.count)));
  int64_t next = 0;
  for (int64_t left = list.count; left > 0;) {
    const auto listed = std::span(rows).first(static_cast<size_t>(std::min(most, left)));
    compute::list_row_bits(list.bits, next, listed);
    next = listed.back() + 1;
    left -= std::ssize(listed);
    take(listed);
  }
}

void for_each_chunk(const BoxTensor& box, const ChangedList& list,
                    core::FunctionRef<void(std::span<const std::byte>)> take) {
  const int64_t row_bytes = box.layout.row_bytes(box.cells.cols);
  const int64_t width = box.layout.row_width(box.cells.cols);
  const compute::Element element = compute::element_of(box.layout.dtype);
  std::vector<std::byte> buffer;
  for_each_listed(list, rows_per_chunk(row_bytes), [&](std::span<const int64_t> rows) {
    buffer.resize(rows.size() * static_cast<size_t>(row_bytes));
    if (box.reader != nullptr) {
      box.reader->read_listed(rows, buffer.data());
    } else if (box.backend == nullptr) {
      std::byte* to = buffer.data();
      for (const int64_t row : rows) {
        std::memcpy(to, box.at_row(box.cells.row + row), static_cast<size_t>(row_bytes));
        to += row_bytes;
      }
    } else {
      for (size_t at = 0; at < rows.size(); at += kMostNumbers) {
        const auto some = rows.subspan(at, std::min(kMostNumbers, rows.size() - at));
        const compute::RowTransfer transfer{
            .from = {box.data, element, static_cast<size_t>(box.stride), some.data()},
            .to = {buffer.data() + at * static_cast<size_t>(row_bytes), element,
                   static_cast<size_t>(width)},
            .rows = std::ssize(some),
            .width = width};
        box.backend->transfer().copy_to_host({&transfer, 1});
      }
    }
    take(buffer);
  });
}

void for_each_chunk(const ChangedList& list,
                    core::FunctionRef<void(std::span<const std::byte>)> take) {
  for_each_listed(list, rows_per_chunk(sizeof(int64_t)), [&](std::span<int64_t> rows) {
    for (int64_t& row : rows) row += list.row;
    take(std::as_bytes(rows));
  });
}

void write_listed_cells(const BoxTensor& box, std::span<const int64_t> numbers, int64_t col,
                        int64_t cols, const std::byte* from, int64_t from_stride) {
  const int64_t bytes = box.layout.element_bytes();
  const int64_t first = box.layout.by_row ? 0 : col - box.cells.col;
  const int64_t width = box.layout.row_width(cols);
  std::byte* const to = box.data + first * bytes;
  if (box.backend == nullptr) {
    for (const int64_t row : numbers) {
      std::memcpy(to + row * box.stride * bytes, from, static_cast<size_t>(width * bytes));
      from += from_stride;
    }
    return;
  }
  const compute::Element element = compute::element_of(box.layout.dtype);
  for (size_t at = 0; at < numbers.size(); at += kMostNumbers) {
    const auto some = numbers.subspan(at, std::min(kMostNumbers, numbers.size() - at));
    const compute::RowTransfer transfer{
        .from = {from + static_cast<int64_t>(at) * from_stride, element,
                 static_cast<size_t>(from_stride / bytes)},
        .to = {to, element, static_cast<size_t>(box.stride), some.data()},
        .rows = std::ssize(some),
        .width = width};
    box.backend->transfer().copy_from_host({&transfer, 1});
  }
}

void write_cells(const BoxTensor& box, const plan::Rectangle& cells, const std::byte* from,
                 int64_t from_stride) {
  const int64_t bytes = box.layout.element_bytes();
  const int64_t first = box.layout.by_row ? 0 : cells.col - box.cells.col;
  const int64_t width = box.layout.row_width(cells.cols);
  std::byte* const to = box.at_row(cells.row) + first * bytes;
  if (box.backend == nullptr) {
    copy_rows(from, from_stride, to, box.stride * bytes, cells.rows, width * bytes);
    return;
  }
  const compute::Element element = compute::element_of(box.layout.dtype);
  const compute::RowTransfer transfer{
      .from = {from, element, static_cast<size_t>(from_stride / bytes)},
      .to = {to, element, static_cast<size_t>(box.stride)},
      .rows = cells.rows,
      .width = width};
  box.backend->transfer().copy_from_host({&transfer, 1});
}

int64_t zeros_for(const BoxTensor& box) {
  const int64_t row_bytes = box.layout.row_bytes(box.cells.cols);
  return std::min(box.cells.rows, rows_per_chunk(row_bytes)) * row_bytes;
}

void write_zeros(const BoxTensor& box, std::span<const std::byte> zeros) {
  const int64_t row_bytes = box.layout.row_bytes(box.cells.cols);
  const int64_t height = rows_per_chunk(row_bytes);
  plan::Rectangle cells = box.cells;
  for (int64_t row = 0; row < box.cells.rows; row += height) {
    cells.row = box.cells.row + row;
    cells.rows = std::min(height, box.cells.rows - row);
    write_cells(box, cells, zeros.data(), row_bytes);
  }
}

void copy_rows(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride,
               int64_t rows, int64_t bytes) {
  if (from_stride == bytes && to_stride == bytes) {
    std::memcpy(to, from, static_cast<size_t>(rows * bytes));
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    std::memcpy(to + r * to_stride, from + r * from_stride, static_cast<size_t>(bytes));
  }
}

int64_t elements_of(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

int64_t DenseTensor::bytes() const {
  return elements_of(shape) * static_cast<int64_t>(core::dtype_size(dtype));
}

}  // namespace shardrec::checkpoint
