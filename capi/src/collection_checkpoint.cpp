#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "collection_object.h"
#include "control_object.h"
#include "guard.h"

namespace shardrec::capi {
namespace {

checkpoint::Part checkpoint_part(shardrec_table_part part) {
  switch (part) {
    case SHARDREC_TABLE_STATE:
      return checkpoint::Part::kState;
    case SHARDREC_TABLE_STATE_2:
      return checkpoint::Part::kState2;
    default:
      return checkpoint::Part::kWeights;
  }
}

std::vector<checkpoint::Piece> checkpoint_pieces(embedding::Collection& collection,
                                                 embedding::PieceUse use) {
  std::vector<checkpoint::Piece> pieces;
  for (const embedding::StoredPiece& piece : collection.stored_pieces(use)) {
    const plan::Table& table = collection.model().tables[static_cast<size_t>(piece.table)];
    const auto part = checkpoint_part(piece.part);
    pieces.push_back({.table = piece.table,
                      .part = part,
                      .layout = checkpoint::layout_of(
                          table.dtype, collection.model().optimizer_of(piece.table).kind, part),
                      .row = piece.row,
                      .rows = piece.rows,
                      .col = piece.col,
                      .cols = piece.cols,
                      .data = piece.data,
                      .stride = static_cast<int64_t>(piece.stride)});
  }
  return pieces;
}

// Runs body with the pieces of a save or a load and the control, which may be NULL.
template <class Body>
void with_checkpoint(const char* name, shardrec_collection* handle, const char* directory,
                     shardrec_control* control_handle, embedding::PieceUse use_of_pieces,
                     Body body) {
  const auto use = enter(handle, Access::kExclusive);
  use->membership->require_open();
  comm::tell_shortage(use->membership->communicator(), name, [&] {
    const std::string path(require_text(directory, "directory"));
    std::shared_ptr<core::Control> control;
    if (control_handle != nullptr) control = enter(control_handle, Access::kShared).share();
    embedding::Collection& collection = *use->collection;
    const checkpoint::Group group{collection.collectives(), collection.layout().rank(),
                                  collection.layout().ranks()};
    const auto pieces = checkpoint_pieces(collection, use_of_pieces);
    body(collection, group, path, pieces, control.get());
  });
}

}  // namespace
}  // namespace shardrec::capi

using namespace shardrec;  // NOLINT(google-build-using-namespace): the C functions live outside
using namespace shardrec::capi;  // NOLINT(google-build-using-namespace)

shardrec_status shardrec_collection_save(shardrec_collection* collection, const char* directory,
                                         shardrec_control* control) {
  return guard([&] {
    with_checkpoint(
        "save", collection, directory, control, embedding::PieceUse::kSave,
        [](embedding::Collection& tables, const checkpoint::Group& group, const std::string& path,
           const std::vector<checkpoint::Piece>& pieces, core::Control* progress) {
          checkpoint::save(group, path, tables.model(), tables.step(), pieces, progress);
        });
  });
}

shardrec_status shardrec_collection_load(shardrec_collection* collection, const char* directory,
                                         shardrec_control* control) {
  return guard([&] {
    with_checkpoint(
        "load", collection, directory, control, embedding::PieceUse::kLoad,
        [](embedding::Collection& tables, const checkpoint::Group& group, const std::string& path,
           const std::vector<checkpoint::Piece>& pieces, core::Control* progress) {
          tables.set_step(checkpoint::load(group, path, tables.model(), pieces, progress));
          tables.update().drop_accumulated();
        });
  });
}
