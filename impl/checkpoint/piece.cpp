#include "checkpoint/piece.h"

#include <algorithm>
#include <bit>

#include "core/error.h"
#include "core/tensor.h"
#include "plan/names.h"

namespace shardrec::checkpoint {

static_assert(std::endian::native == std::endian::little,
              "files are little-endian and copied as they are");

int64_t Layout::element_bytes() const { return static_cast<int64_t>(core::dtype_size(dtype)); }

int part_count(shardrec_optimizer optimizer) {
  return 1 + static_cast<int>(plan::states_of(optimizer).size());
}

Layout layout_of(shardrec_dtype table_dtype, shardrec_optimizer optimizer, Part part) {
  if (part == Part::kWeights) return {.by_row = false, .dtype = table_dtype};
  const auto states = plan::states_of(optimizer);
  const auto state = static_cast<size_t>(part) - static_cast<size_t>(Part::kState);
  if (state >= states.size()) {
    core::fail(SHARDREC_INTERNAL,
               core::sentence("the optimizer ", plan::name_of(optimizer), " has no state ", state));
  }
  return {.by_row = states[state].by_row, .dtype = SHARDREC_FLOAT32};
}

std::string name_of(shardrec_optimizer optimizer, Part part) {
  if (part == Part::kWeights) return "weights";
  const auto state = static_cast<size_t>(part) - static_cast<size_t>(Part::kState);
  return std::string("state/") + plan::states_of(optimizer)[state].name;
}

void check_piece(const Piece& piece, const plan::Model& model) {
  bool good = piece.table >= 0 && piece.table < std::ssize(model.tables);
  if (good) {
    const plan::Table& table = model.tables[static_cast<size_t>(piece.table)];
    good =
        piece.row >= 0 && piece.rows >= 1 && piece.col >= 0 && piece.cols >= 1 &&
        piece.row + piece.rows <= table.rows && piece.col + piece.cols <= table.dim &&
        static_cast<int>(piece.part) < part_count(model.optimizer_of(piece.table).kind) &&
        piece.layout == layout_of(table.dtype, model.optimizer_of(piece.table).kind, piece.part) &&
        piece.stride >= piece.layout.row_width(piece.cols) && piece.data != nullptr;
  }
  if (!good) {
    core::fail(SHARDREC_INTERNAL,
               core::sentence("a piece of table ", piece.table, " for a checkpoint is malformed"));
  }
}

void for_each_chunk(const Piece& piece, core::FunctionRef<void(std::span<const std::byte>)> take) {
  const int64_t row_bytes = piece.layout.row_bytes(piece.cols);
  const int64_t height = rows_per_chunk(row_bytes);
  std::vector<std::byte> buffer;
  for (int64_t row = 0; row < piece.rows; row += height) {
    const int64_t rows = std::min(height, piece.rows - row);
    const std::byte* first = piece.at_row(piece.row + row);
    const auto bytes = static_cast<size_t>(rows * row_bytes);
    if (piece.compact()) {
      take({first, bytes});
      continue;
    }
    buffer.resize(bytes);
    const int64_t stride = piece.stride * piece.layout.element_bytes();
    for (int64_t i = 0; i < rows; ++i) {
      std::copy_n(first + i * stride, row_bytes, buffer.data() + i * row_bytes);
    }
    take(buffer);
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
