#include "checkpoint/contents/collection_contents.h"

#include "core/error.h"
#include "embedding/tables/stored_pieces.h"
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
  for (const embedding::StoredPiece& stored :
       embedding::stored_pieces(collection.layout(), collection.shards(), use)) {
    const plan::Table& table = collection.model().tables[static_cast<size_t>(stored.table)];
    const auto part = static_cast<TablePart>(stored.part);
    boxes.push_back(
        {.table = stored.table,
         .part = part,
         .layout = layout_of(table.dtype, collection.model().optimizer_of(stored.table).kind, part),
         .cells = stored.cells,
         .data = stored.data,
         .stride = static_cast<int64_t>(stored.stride),
         .backend = backend,
         .converter = &collection.backend()});
  }
  return boxes;
}

// The boxes are those of stored_pieces(), in its order. A list has boxes that are saved.
void list_changes(embedding::Collection& collection, const embedding::RowMark& mark,
                  DeltaStates states, CollectionContents& contents) {
  const auto pieces = embedding::stored_pieces(collection.layout(), collection.shards(),
                                               embedding::PieceUse::kSave);
  std::vector<int32_t> list_of(collection.shards().size(), kAllRows);
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (states == DeltaStates::kLeftOut && pieces[i].part != SHARDREC_TABLE_WEIGHTS) continue;
    int32_t& list = list_of[pieces[i].shard];
    if (list == kAllRows) {
      list = static_cast<int32_t>(contents.lists.size());
      const auto bits = mark.of(pieces[i].shard);
      contents.lists.push_back({.table = pieces[i].table,
                                .row = pieces[i].cells.row,
                                .rows = pieces[i].cells.rows,
                                .col = pieces[i].cells.col,
                                .shard = pieces[i].shard,
                                .of_states = pieces[i].part != SHARDREC_TABLE_WEIGHTS,
                                .bits = bits,
                                .count = compute::count_row_bits(bits)});
    }
    contents.boxes[i].list = list;
  }
}

CollectionContents contents_of(training::Tables& tables, const std::string& name) {
  embedding::Collection& collection = tables.collection();
  CollectionContents contents{.name = name,
                              .model = &collection.model(),
                              .plan = plan::plan_to_json(tables.plan(), collection.model()),
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

CollectionContents contents_to_save(training::Tables& tables, const std::string& name) {
  const bool writes = tables.writes_rows();
  CollectionContents contents = contents_of(tables, name);
  if (writes) contents.boxes = boxes_of(tables.collection(), embedding::PieceUse::kSave);
  return contents;
}

CollectionContents changes_to_save(training::Tables& tables, const std::string& name,
                                   const embedding::RowMark& mark, DeltaStates states) {
  CollectionContents contents = contents_to_save(tables, name);
  if (!contents.boxes.empty()) list_changes(tables.collection(), mark, states, contents);
  if (states == DeltaStates::kLeftOut) {
    std::erase_if(contents.boxes,
                  [](const BoxTensor& box) { return box.part != TablePart::kWeights; });
  }
  return contents;
}

CollectionContents contents_to_load(training::Tables& tables, const std::string& name) {
  tables.collection().require_no_backward();
  tables.collection().ordered().require_nothing_posted("load");
  tables.collection().require_no_snapshot("load");
  tables.require_no_sync("load");
  CollectionContents contents = contents_of(tables, name);
  contents.boxes = boxes_of(tables.collection(), embedding::PieceUse::kLoad);
  contents.not_one_model = tables.not_one_model();
  return contents;
}

void apply_loaded(training::Tables& tables, const CollectionContents& loaded) noexcept {
  embedding::TrainingSettings& settings = tables.collection().settings();
  for (size_t t = 0; t < loaded.tables.size(); ++t) {
    const auto table = static_cast<int32_t>(t);
    if (loaded.tables[t].learning_rate) {
      settings.set_learning_rate(table, *loaded.tables[t].learning_rate);
    }
    settings.set_frozen(table, loaded.tables[t].frozen);
  }
  tables.end_filling(loaded.step);
}

}  // namespace shardrec::checkpoint
