#include "checkpoint/blocks.h"

#include <algorithm>
#include <bit>

#include "core/error.h"

namespace shardrec::checkpoint {

static_assert(std::endian::native == std::endian::little && sizeof(float) == 4,
              "files are little-endian and copied as they are");

namespace {

int64_t rows_per_block(int64_t width) { return std::max<int64_t>(1, kBlockBytes / (width * 4)); }

}  // namespace

void check_piece(const Piece& piece, const plan::Model& model) {
  bool good = piece.table >= 0 && piece.table < std::ssize(model.tables);
  if (good) {
    const plan::Table& table = model.tables[static_cast<size_t>(piece.table)];
    good = piece.row >= 0 && piece.rows >= 1 && piece.col >= 0 && piece.cols >= 1 &&
           piece.row + piece.rows <= table.rows && piece.col + piece.cols <= table.dim &&
           piece.stride >= row_width(piece.part, piece.cols) && piece.data != nullptr;
  }
  if (!good) {
    core::fail(SHARDREC_INTERNAL,
               core::sentence("a piece of table ", piece.table, " for a checkpoint is malformed"));
  }
}

void for_each_block(const Piece& piece, core::FunctionRef<void(std::span<const std::byte>)> take) {
  const int64_t width = row_width(piece.part, piece.cols);
  const int64_t height = rows_per_block(width);
  std::vector<float> buffer;
  for (int64_t row = 0; row < piece.rows; row += height) {
    const int64_t rows = std::min(height, piece.rows - row);
    const float* first = piece.data + row * piece.stride;
    const auto count = static_cast<size_t>(rows * width);
    if (piece.stride == width) {
      take(std::as_bytes(std::span(first, count)));
      continue;
    }
    buffer.resize(count);
    for (int64_t i = 0; i < rows; ++i) {
      std::copy_n(first + i * piece.stride, width, buffer.data() + i * width);
    }
    take(std::as_bytes(std::span(buffer)));
  }
}

int64_t bytes_read(const Overlap& overlap, const ManifestTensor& tensor) {
  return overlap.rows * row_width(tensor.part, tensor.cols) * 4;
}

void copy_overlap(const core::ReadFile& file, int64_t start, const ManifestTensor& tensor,
                  const Overlap& overlap, const Piece& piece, std::vector<float>& buffer,
                  core::FunctionRef<void(int64_t)> progress) {
  const int64_t width = row_width(tensor.part, tensor.cols);
  const int64_t height = rows_per_block(width);
  const bool weights = tensor.part == Part::kWeights;
  const int64_t wanted = weights ? overlap.cols : 1;
  const int64_t from = weights ? overlap.col - tensor.col : 0;
  const int64_t to = weights ? overlap.col - piece.col : 0;
  for (int64_t done = 0; done < overlap.rows; done += height) {
    const int64_t rows = std::min(height, overlap.rows - done);
    const int64_t row = overlap.row + done;
    const int64_t offset = start + (row - tensor.row) * width * 4;
    const auto count = static_cast<size_t>(rows * width);
    float* out = piece.data + (row - piece.row) * piece.stride + to;
    if (wanted == width && piece.stride == width) {
      file.read_at(offset, std::as_writable_bytes(std::span(out, count)));
    } else {
      buffer.resize(std::max(buffer.size(), count));
      file.read_at(offset, std::as_writable_bytes(std::span(buffer.data(), count)));
      for (int64_t i = 0; i < rows; ++i) {
        std::copy_n(buffer.data() + i * width + from, wanted, out + i * piece.stride);
      }
    }
    progress(static_cast<int64_t>(count) * 4);
  }
}

}  // namespace shardrec::checkpoint
