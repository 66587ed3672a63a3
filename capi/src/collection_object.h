// The objects behind shardrec_collection and shardrec_lookup. A collection and its lookups share
// one busy flag: one thread at a time uses any of them.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "checkpoint/collection_contents.h"
#include "comm_object.h"
#include "embedding/collection.h"
#include "embedding/lookup.h"
#include "handle.h"
#include "replica/sync.h"
#include "shardrec/lookup.h"

namespace shardrec::capi {

struct CollectionObject {
  // Gives a collection that was just made the number that names it in traces and metrics.
  void number_it() noexcept {
    number = membership->next_collection();
    embedding::Counters& counters = collection->counters();
    counters.track = {.rank = membership->communicator().rank(), .collection = number};
  }

  checkpoint::CollectionState state() { return {*collection, sync.get(), plan}; }

  std::shared_ptr<Membership> membership;
  std::shared_ptr<embedding::Collection> collection;
  std::unique_ptr<replica::ReplicaSync> sync;  // on a mesh
  plan::Plan plan;                             // of the sharding group
  // Over all ranks of the membership, which on a mesh are those of all replicas.
  std::unique_ptr<checkpoint::GroupChannels> checkpoints;
  uint32_t number = 0;  // of the collections on its communicator; the same on all ranks
  std::shared_ptr<BusyFlag> busy = std::make_shared<BusyFlag>();

  BusyFlag& busy_flag() { return *busy; }
};

struct LookupObject {
  // The lookup goes first: it may have to tell the communicator that it is gone.
  std::shared_ptr<Membership> membership;
  std::unique_ptr<embedding::Lookup> lookup;
  std::shared_ptr<BusyFlag> busy;

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
