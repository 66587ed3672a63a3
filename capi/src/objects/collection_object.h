// The objects behind shardrec_collection and shardrec_lookup. A collection and its lookups share
// one busy flag: one thread at a time uses any of them.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "embedding/lookup.h"
#include "embedding/rows/row_marks.h"
#include "embedding/tables/tracks.h"
#include "handle.h"
#include "objects/comm_object.h"
#include "shardrec/lookup.h"
#include "training/tables.h"

namespace shardrec::capi {

struct CollectionObject {
  explicit CollectionObject(std::shared_ptr<Membership> its_membership)
      : membership(std::move(its_membership)) {}

  // The number names the collection in traces and metrics.
  void set_tables(std::shared_ptr<training::Tables> made) noexcept {
    tables = std::move(made);
    number = membership->next_collection();
    embedding::trace_as(tables->collection().counters(), membership->communicator().rank(), number);
  }
  embedding::Collection& collection() const { return tables->collection(); }

  std::shared_ptr<Membership> membership;
  std::shared_ptr<training::Tables> tables;
  embedding::RowMarks marks;
  uint32_t number = 0;  // of the collections on its communicator; the same on all ranks
  std::shared_ptr<BusyFlag> busy = std::make_shared<BusyFlag>();

  BusyFlag& busy_flag() { return *busy; }
};

struct LookupObject {
  // The lookup goes first: it may have to tell the communicator that it is gone.
  std::shared_ptr<Membership> membership;
  std::unique_ptr<embedding::Lookup> lookup;
  std::shared_ptr<BusyFlag> busy;
  std::atomic<bool> in_backward{false};  // from backward_begin to backward_wait: the flag is left

  ~LookupObject() {
    lookup.reset();
    if (in_backward && busy->try_take_up()) busy->give_back();
  }
  BusyFlag& busy_flag() { return *busy; }
};

embedding::CollectionOptions collection_options(const shardrec_options* handle);

template <>
struct Handle<shardrec_collection> {
  using Object = CollectionObject;
  static constexpr Kind kKind = Kind::kCollection;
};

template <>
struct Handle<shardrec_lookup> {
  using Object = LookupObject;
  static constexpr Kind kKind = Kind::kLookup;
};

}  // namespace shardrec::capi
