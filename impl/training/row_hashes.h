// Hashes of a collection's rows as they are stored, wherever its tables are: rows of equal numbers have equal hashes.
// All NaNs count as one; a zero and its negative are two numbers.
//
// Thread rule: as the collection's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compute/buffer.h"
#include "embedding/collection.h"
#include "embedding/tables/stored_pieces.h"

namespace shardrec::training {

class RowHashes {
 public:
  // Operations of the collection are over.
  explicit RowHashes(embedding::Collection& collection);

  // Rows of a block, but for the last one of a piece.
  static int64_t block_rows(const embedding::StoredPiece& piece);

  // Of the whole piece; of each of its blocks; of each of some rows. Rows are copied to the host a block at a time.
  // Throws OUT_OF_MEMORY and what copies throw.
  uint64_t of_piece(const embedding::StoredPiece& piece);
  std::vector<uint64_t> of_blocks(const embedding::StoredPiece& piece);
  std::vector<uint64_t> of_rows(const embedding::StoredPiece& piece, int64_t first, int64_t count);

 private:
  // Rows [first, first + count), side by side, until the next call.
  std::span<const std::byte> read(const embedding::StoredPiece& piece, int64_t first,
                                  int64_t count);

  embedding::Collection& collection_;
  compute::Buffer rows_;
};

}  // namespace shardrec::training
