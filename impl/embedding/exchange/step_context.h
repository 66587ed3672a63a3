// What the stages of a step work with: the collection's, which outlives them.
#pragma once

#include <cstdint>
#include <span>

#include "comm/bodies/carrier.h"
#include "comm/communicator.h"
#include "compute/backend.h"
#include "embedding/exchange/exchange.h"
#include "embedding/exchange/ordered_channel.h"
#include "embedding/exchange/step_scratch.h"
#include "embedding/tables/changed_rows.h"
#include "embedding/tables/counters.h"
#include "embedding/tables/layout.h"
#include "embedding/tables/options.h"
#include "embedding/tables/settings.h"
#include "embedding/tables/shard.h"
#include "embedding/tables/snapshot.h"

namespace shardrec::embedding {

class ReplicaAgreement;

struct StepContext {
  const Layout& layout;
  const CollectionOptions& options;
  comm::Communicator& communicator;
  comm::BodyCarrier& bodies;
  std::span<Shard> shards;
  TrainingSettings& settings;
  Counters& counters;
  OrderedChannel& ordered;
  SnapshotPlace& snapshot;  // asked before rows change
  ChangedRows& changed_rows;
  StepScratch& scratch;
  ReplicaAgreement* replicas;  // null: a sharding group decides alone

  compute::Backend& backend() const { return bodies.backend(); }
  const plan::Model& model() const { return layout.model(); }
  Exchange make_exchange(ExchangeKind kind, const char* call) const {
    return {kind, call, layout.rank(), ordered, bodies};
  }
};

}  // namespace shardrec::embedding
