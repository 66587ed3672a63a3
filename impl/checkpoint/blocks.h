// Moves boxes between memory with a row stride and compact bytes of files, a block of about 1 MiB
// at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/manifest.h"
#include "core/environment.h"
#include "core/function_ref.h"

namespace shardrec::checkpoint {

inline constexpr int64_t kBlockBytes = 1 << 20;

// Throws INTERNAL when the piece is no box of a table of the model, or has no memory.
void check_piece(const Piece& piece, const plan::Model& model);

// Calls take(bytes) for the elements of the piece, row by row, in blocks.
void for_each_block(const Piece& piece, core::FunctionRef<void(std::span<const std::byte>)> take);

// What of a tensor in a file belongs to a piece in memory.
struct Overlap {
  size_t tensor = 0;  // index in the manifest
  int64_t row = 0;    // of the table
  int64_t rows = 0;
  int64_t col = 0;  // columns [col, col + cols); for a state by row, all of the box
  int64_t cols = 0;
};

// Bytes that copy_overlap reads.
int64_t bytes_read(const Overlap& overlap, const ManifestTensor& tensor);

// Reads the rows of the overlap from the tensor, which begins at byte `start` of the file, and
// copies its columns to the piece. `progress` is told the bytes of each block.
void copy_overlap(const core::ReadFile& file, int64_t start, const ManifestTensor& tensor,
                  const Overlap& overlap, const Piece& piece, std::vector<std::byte>& buffer,
                  core::FunctionRef<void(int64_t)> progress);

}  // namespace shardrec::checkpoint
