#include "checkpoint/contents/frozen.h"

#include <algorithm>
#include <utility>

namespace shardrec::checkpoint {
namespace {

class SnapshotReader final : public RowReader {
 public:
  SnapshotReader(embedding::Snapshot& snapshot, size_t piece)
      : snapshot_(snapshot), piece_(piece) {}

  void read(int64_t first, int64_t rows, std::byte* to) override {
    snapshot_.read(piece_, first, rows, to);
  }
  void read_listed(std::span<const int64_t> rows, std::byte* to) override {
    snapshot_.read_listed(piece_, rows, to);
  }

 private:
  embedding::Snapshot& snapshot_;
  size_t piece_;
};

// What of the tables the contents are about.
embedding::SnapshotOf snapshot_of(training::Tables& tables, const CollectionContents& contents) {
  embedding::SnapshotOf of{.none = contents.boxes.empty()};
  if (contents.lists.empty()) return of;
  of.states = std::ranges::any_of(
      contents.boxes, [](const BoxTensor& box) { return box.part != TablePart::kWeights; });
  of.listed.resize(tables.collection().shards().size());
  for (const ChangedList& list : contents.lists) of.listed[list.shard] = list.bits;
  return of;
}

}  // namespace

void Frozen::end() noexcept {
  for (const FrozenTables& tables : tables_) tables.snapshot->end();
}

void Frozen::add(training::Tables& tables, CollectionContents& contents) {
  readers_.reserve(readers_.size() + contents.boxes.size());
  tables_.reserve(tables_.size() + 1);
  lists_.reserve(lists_.size() + contents.lists.size());
  for (ChangedList& list : contents.lists) {
    list.bits = lists_.emplace_back(list.bits.begin(), list.bits.end());
  }
  FrozenTables& added = tables_.emplace_back(
      FrozenTables{tables.shared_collection(),
                   tables.collection().take_snapshot(snapshot_of(tables, contents))});
  for (size_t piece = 0; piece < contents.boxes.size(); ++piece) {
    readers_.push_back(std::make_unique<SnapshotReader>(*added.snapshot, piece));
    contents.boxes[piece].reader = readers_.back().get();
  }
}

void Frozen::add(ItemContents& item) {
  copies_.reserve(copies_.size() + item.tensors.size());
  for (DenseTensor& tensor : item.tensors) {
    const std::span<std::byte> bytes = tensor.span();
    copies_.emplace_back(bytes.begin(), bytes.end());
    tensor.data = copies_.back().data();
  }
}

void Frozen::stop() noexcept {
  for (const FrozenTables& tables : tables_) tables.snapshot->stop();
}

uint64_t bytes_to_freeze(training::Tables& tables, const CollectionContents& contents) {
  if (contents.boxes.empty()) return 0;
  embedding::Collection& collection = tables.collection();
  uint64_t bytes =
      embedding::Snapshot::bytes_to_make(collection.layout(), collection.shards(),
                                         collection.backend(), snapshot_of(tables, contents));
  for (const ChangedList& list : contents.lists) bytes += list.bits.size_bytes();
  return bytes;
}

uint64_t bytes_to_freeze(const ItemContents& item) {
  uint64_t bytes = 0;
  for (const DenseTensor& tensor : item.tensors) bytes += static_cast<uint64_t>(tensor.bytes());
  return bytes;
}

}  // namespace shardrec::checkpoint
