// A hash of all that a rank holds of its tables: every byte of the weights and of every optimizer
// state, whatever their dtype, number of column boxes and stride.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/hash.h"
#include "embedding/collection.h"
#include "embedding/tables/stored_pieces.h"

namespace shardrec::test {

inline uint64_t digest(embedding::Collection& collection) {
  uint64_t hash = 0;
  std::vector<std::byte> row_bytes;
  for (const auto& piece : embedding::stored_pieces(collection.layout(), collection.shards(),
                                                    embedding::PieceUse::kLoad)) {
    const auto width = static_cast<size_t>(piece.row_width());
    row_bytes.resize(width * compute::element_bytes(piece.element));
    for (int64_t row = 0; row < piece.cells.rows; ++row) {
      const compute::RowTransfer transfer{.from = {piece.at_row(row), piece.element, piece.stride},
                                          .to = {row_bytes.data(), piece.element, width},
                                          .rows = 1,
                                          .width = piece.row_width()};
      collection.backend().transfer().copy_to_host({&transfer, 1});
      hash = core::hash64(hash, row_bytes);
    }
  }
  return hash;
}

}  // namespace shardrec::test
