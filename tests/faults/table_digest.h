// A hash of all that a rank holds of its tables: every byte of the weights and of every optimizer
// state, whatever their dtype, number of column boxes and stride.
#pragma once

#include <cstdint>

#include "core/hash.h"
#include "embedding/collection.h"

namespace shardrec::test {

inline uint64_t digest(embedding::Collection& collection) {
  uint64_t hash = 0;
  for (const auto& piece : collection.stored_pieces(embedding::PieceUse::kLoad)) {
    for (int64_t row = 0; row < piece.rows; ++row) {
      hash = core::hash64(hash, piece.bytes_of_row(row));
    }
  }
  return hash;
}

}  // namespace shardrec::test
