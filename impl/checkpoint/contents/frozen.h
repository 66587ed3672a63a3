// What keeps the contents of a commit as they are while what was added to it goes on: snapshots of tables,
// copies of everything else.
//
// Thread rule: one thread at a time; stop() and end() any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "checkpoint/contents/contents.h"
#include "checkpoint/format/tensors.h"
#include "embedding/collection.h"
#include "embedding/tables/snapshot.h"
#include "training/tables.h"

namespace shardrec::checkpoint {

class Frozen {
 public:
  Frozen() = default;
  ~Frozen() { end(); }
  Frozen(const Frozen&) = delete;
  Frozen& operator=(const Frozen&) = delete;

  // Contents that contents_to_save() or changes_to_save() made of the tables: their rows are read from a snapshot from
  // now on, and lists of them from a copy. Throws what embedding::Collection::take_snapshot() does.
  void add(training::Tables& tables, CollectionContents& contents);
  // Their tensors are copied.
  void add(ItemContents& item);

  // Whoever writes the contents gets CANCELLED soon, and steps keep no more rows for it. end(): and the
  // tables may have other snapshots.
  void stop() noexcept;
  void end() noexcept;

 private:
  struct FrozenTables {
    std::shared_ptr<embedding::Collection> collection;  // what a snapshot is of
    std::shared_ptr<embedding::Snapshot> snapshot;
  };
  std::vector<FrozenTables> tables_;
  std::vector<std::unique_ptr<RowReader>> readers_;
  std::vector<std::vector<std::byte>> copies_;
  std::vector<std::vector<compute::RowWord>> lists_;
};

// Bytes of the host's memory that the two take.
uint64_t bytes_to_freeze(training::Tables& tables, const CollectionContents& contents);
uint64_t bytes_to_freeze(const ItemContents& item);

}  // namespace shardrec::checkpoint
