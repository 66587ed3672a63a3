// What of a rank's tables is stored: the rectangles that checkpoints, reads of rows and syncs walk over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compute/element.h"
#include "embedding/tables/layout.h"
#include "embedding/tables/shard.h"
#include "plan/model/rectangle.h"
#include "shardrec/collection.h"

namespace shardrec::embedding {

// A rectangle of a table, or of one of its states, of this rank: what checkpoints hold. It is in the
// memory of the back end.
struct StoredPiece {
  int32_t table = 0;
  shardrec_table_part part = SHARDREC_TABLE_WEIGHTS;
  bool by_row = false;  // one value per row, taken over the columns of `cells`
  compute::Element element = compute::Element::kFloat32;
  plan::Rectangle cells = {};
  std::byte* data = nullptr;
  size_t stride = 0;  // elements between rows
  size_t shard = 0;   // index of the shard that it lies in
  size_t sheet = 0;   // ... and in which of Shard::sheets()

  int64_t row_width() const { return by_row ? 1 : cells.cols; }  // elements
  // Of a row, without what lies between rows.
  size_t row_bytes() const {
    return static_cast<size_t>(row_width()) * compute::element_bytes(element);
  }
  // Its row number `index`, counted from its first.
  std::byte* at_row(int64_t index) const {
    return data + static_cast<size_t>(index) * stride * compute::element_bytes(element);
  }
};

enum class PieceUse : uint8_t { kSave, kLoad, kCompare };

// The pieces of the layout's rank. kSave: each cell of a table and of its state by exactly one rank
// (replicas by rank 0, a row's statistic by the owner of its first column); of a mesh each group names its own, but where
// groups share states: then the first one has the weights, and each its states. kLoad: every copy. kCompare: every copy of
// what the ranks have copies of, at the same places, not states that they share.
std::vector<StoredPiece> stored_pieces(const Layout& layout, std::span<Shard> shards, PieceUse use);

}  // namespace shardrec::embedding
