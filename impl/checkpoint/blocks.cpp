#include "checkpoint/blocks.h"

#include <algorithm>
#include <bit>

#include "core/error.h"

namespace shardrec::checkpoint {

static_assert(std::endian::native == std::endian::little,
              "files are little-endian and copied as they are");

namespace {

int64_t rows_per_block(int64_t row_bytes) { return std::max<int64_t>(1, kBlockBytes / row_bytes); }

}  // namespace

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

void for_each_block(const Piece& piece, core::FunctionRef<void(std::span<const std::byte>)> take) {
  const int64_t row_bytes = piece.layout.row_width(piece.cols) * piece.layout.element_bytes();
  const int64_t stride = piece.stride * piece.layout.element_bytes();
  const int64_t height = rows_per_block(row_bytes);
  std::vector<std::byte> buffer;
  for (int64_t row = 0; row < piece.rows; row += height) {
    const int64_t rows = std::min(height, piece.rows - row);
    const std::byte* first = piece.data + row * stride;
    const auto bytes = static_cast<size_t>(rows * row_bytes);
    if (stride == row_bytes) {
      take({first, bytes});
      continue;
    }
    buffer.resize(bytes);
    for (int64_t i = 0; i < rows; ++i) {
      std::copy_n(first + i * stride, row_bytes, buffer.data() + i * row_bytes);
    }
    take(buffer);
  }
}

int64_t bytes_read(const Overlap& overlap, const ManifestTensor& tensor) {
  return overlap.rows * tensor.layout.row_width(tensor.cols) * tensor.layout.element_bytes();
}

void copy_overlap(const core::ReadFile& file, int64_t start, const ManifestTensor& tensor,
                  const Overlap& overlap, const Piece& piece, std::vector<std::byte>& buffer,
                  core::FunctionRef<void(int64_t)> progress) {
  const int64_t element = tensor.layout.element_bytes();
  const int64_t row_bytes = tensor.layout.row_width(tensor.cols) * element;
  const int64_t stride = piece.stride * element;
  const int64_t height = rows_per_block(row_bytes);
  const bool by_row = tensor.layout.by_row;
  const int64_t wanted = tensor.layout.row_width(overlap.cols) * element;
  const int64_t from = by_row ? 0 : (overlap.col - tensor.col) * element;
  const int64_t to = by_row ? 0 : (overlap.col - piece.col) * element;
  for (int64_t done = 0; done < overlap.rows; done += height) {
    const int64_t rows = std::min(height, overlap.rows - done);
    const int64_t row = overlap.row + done;
    const int64_t offset = start + (row - tensor.row) * row_bytes;
    const auto bytes = static_cast<size_t>(rows * row_bytes);
    std::byte* out = piece.data + (row - piece.row) * stride + to;
    if (wanted == row_bytes && stride == row_bytes) {
      file.read_at(offset, {out, bytes});
    } else {
      buffer.resize(std::max(buffer.size(), bytes));
      file.read_at(offset, {buffer.data(), bytes});
      for (int64_t i = 0; i < rows; ++i) {
        std::copy_n(buffer.data() + i * row_bytes + from, wanted, out + i * stride);
      }
    }
    progress(rows * row_bytes);
  }
}

}  // namespace shardrec::checkpoint
