#include "embedding/tables/stored_pieces.h"

#include "plan/model/model.h"

namespace shardrec::embedding {
namespace {

std::byte* bytes_of(float* data) { return static_cast<std::byte*>(static_cast<void*>(data)); }

}  // namespace

std::vector<StoredPiece> stored_pieces(const Layout& layout, std::span<Shard> shards,
                                       PieceUse use) {
  std::vector<StoredPiece> pieces;
  for (size_t s = 0; s < shards.size(); ++s) {
    Shard& shard = shards[s];
    const Part& part = layout.parts()[static_cast<size_t>(shard.part())];
    if (part.replicated && use == PieceUse::kSave && layout.rank() != 0) continue;
    if (part.use == PartUse::kUpdates && use == PieceUse::kCompare) continue;
    if (part.use == PartUse::kLookups && use == PieceUse::kSave &&
        layout.groups().group_of(layout.rank()) != 0) {
      continue;
    }
    const StoredPiece whole{
        .table = part.table, .cells = {.row = part.row, .rows = part.rows}, .shard = s};
    const auto add_matrix = [&](shardrec_table_part kind, compute::Element element,
                                std::byte* first, size_t sheet) {
      for (const ColumnPiece& piece : part.columns) {
        StoredPiece& added = pieces.emplace_back(whole);
        added.part = kind;
        added.element = element;
        added.sheet = sheet;
        added.cells.col = piece.col;
        added.cells.cols = piece.cols;
        added.data = first + static_cast<size_t>(piece.offset) * compute::element_bytes(element);
        added.stride = static_cast<size_t>(part.width);
      }
    };
    if (part.use != PartUse::kUpdates) {
      add_matrix(SHARDREC_TABLE_WEIGHTS, shard.element(), shard.weights(), 0);
    }
    if (part.use == PartUse::kLookups) continue;
    const plan::Optimizer& optimizer = layout.model().optimizer_of(part.table);
    const bool whole_rows = optimizer.row_statistics == SHARDREC_ROW_STATISTICS_ROW;
    const auto states = plan::states_of(optimizer.kind);
    for (size_t k = 0; k < states.size(); ++k) {
      const auto kind = static_cast<shardrec_table_part>(SHARDREC_TABLE_STATE + k);
      if (!states[k].by_row) {
        add_matrix(kind, compute::Element::kFloat32, bytes_of(shard.matrix(k)),
                   shard.sheet_of_matrix(k));
        continue;
      }
      // Values of whole rows: every column owner has the same copy, for all columns.
      if (whole_rows && use == PieceUse::kSave && part.columns[0].col != 0) continue;
      for (size_t range = 0; range < shard.columns().size(); ++range) {
        StoredPiece& added = pieces.emplace_back(whole);
        added.part = kind;
        added.by_row = true;
        added.cells.col = whole_rows ? 0 : part.columns[range].col;
        added.cells.cols = whole_rows ? layout.model().tables[static_cast<size_t>(part.table)].dim
                                      : part.columns[range].cols;
        added.data = bytes_of(shard.row_values(k, range));
        added.sheet = shard.sheet_of_row_values(k, range);
        added.stride = 1;
      }
    }
  }
  return pieces;
}

}  // namespace shardrec::embedding
