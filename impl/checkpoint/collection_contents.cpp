#include "checkpoint/collection_contents.h"

#include "core/error.h"
#include "plan/plan.h"

namespace shardrec::checkpoint {
namespace {

static_assert(static_cast<int>(TablePart::kWeights) == SHARDREC_TABLE_WEIGHTS &&
              static_cast<int>(TablePart::kState) == SHARDREC_TABLE_STATE &&
              static_cast<int>(TablePart::kState2) == SHARDREC_TABLE_STATE_2);

std::vector<BoxTensor> boxes_of(embedding::Collection& collection, embedding::PieceUse use) {
  std::vector<BoxTensor> boxes;
  compute::Backend* const backend =
      collection.backend().host_reaches_memory() ? nullptr : &collection.backend();
  for (const embedding::StoredPiece& stored : collection.stored_pieces(use)) {
    const plan::Table& table = collection.model().tables[static_cast<size_t>(stored.table)];
    const auto part = static_cast<TablePart>(stored.part);
    boxes.push_back(
        {.table = stored.table,
         .part = part,
         .layout = layout_of(table.dtype, collection.model().optimizer_of(stored.table).kind, part),
         .row = stored.row,
         .rows = stored.rows,
         .col = stored.col,
         .cols = stored.cols,
         .data = stored.data,
         .stride = static_cast<int64_t>(stored.stride),
         .backend = backend});
  }
  return boxes;
}

CollectionContents contents_of(const CollectionState& state, const std::string& name) {
  embedding::Collection& collection = state.collection;
  CollectionContents contents{.name = name,
                              .model = &collection.model(),
                              .plan = plan::plan_to_json(state.plan, collection.model()),
                              .step = collection.step(),
                              .tables = manifest_tables(collection.model())};
  for (size_t t = 0; t < contents.tables.size(); ++t) {
    const auto table = static_cast<int32_t>(t);
    const double rate = collection.settings().learning_rate(table);
    if (rate != collection.model().optimizer_of(table).learning_rate) {
      contents.tables[t].learning_rate = rate;
    }
    contents.tables[t].frozen = collection.settings().frozen(table);
  }
  return contents;
}

}  // namespace

CollectionContents contents_to_save(const CollectionState& state, const std::string& name) {
  state.collection.require_whole();
  CollectionContents contents = contents_of(state, name);
  if (state.sync == nullptr) {
    contents.boxes = boxes_of(state.collection, embedding::PieceUse::kSave);
    return contents;
  }
  if (!state.sync->in_step(state.collection)) {
    core::fail(SHARDREC_INVALID_STATE,
               core::sentence("the replicas of the collection have taken steps since they were last"
                              " averaged, and one of them would be saved: call"
                              " shardrec_collection_sync first"));
  }
  if (state.sync->replica() == 0) {
    contents.boxes = boxes_of(state.collection, embedding::PieceUse::kSave);
  }
  return contents;
}

CollectionContents contents_to_load(const CollectionState& state, const std::string& name) {
  CollectionContents contents = contents_of(state, name);
  contents.boxes = boxes_of(state.collection, embedding::PieceUse::kLoad);
  return contents;
}

void apply_loaded(const CollectionState& state, const CollectionContents& loaded) noexcept {
  embedding::Collection& collection = state.collection;
  collection.set_step(loaded.step);
  for (size_t t = 0; t < loaded.tables.size(); ++t) {
    const auto table = static_cast<int32_t>(t);
    if (loaded.tables[t].learning_rate) {
      collection.settings().set_learning_rate(table, *loaded.tables[t].learning_rate);
    }
    collection.settings().set_frozen(table, loaded.tables[t].frozen);
  }
  collection.update().drop_accumulated();
  collection.set_filled_in_part(false);
  if (state.sync != nullptr) state.sync->set_in_step(collection);
}

}  // namespace shardrec::checkpoint
