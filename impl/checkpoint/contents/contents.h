// What a commit or a load is about, in this rank's memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/format/manifest.h"
#include "checkpoint/format/tensors.h"
#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "plan/model/model.h"

namespace shardrec::checkpoint {

// The ranks that save or load together.
struct Group {
  comm::Collectives& collectives;
  comm::Channel& channel;  // for tables on their way from the rank that reads to the one that holds
  int rank = 0;
  int size = 1;
};

// boxes: those of this rank. To save: over all ranks they tile each part of each table exactly once
// (a replicated table, or a state that several ranks hold, is passed by one of them). To load: they
// may overlap, of one rank or of several.
//
// not_one_model: why a load of a part of its tables would not leave them one model: an earlier load has
// left them filled in part, or replicas differ; empty where neither is so.
// loaded: set by a load, before it changes anything: does it fill any of it?
// lists: of a delta, the rows that its boxes save.
struct CollectionContents {
  std::string name;
  const plan::Model* model = nullptr;
  std::string plan;  // plan::plan_to_json
  int64_t step = 0;
  std::vector<ManifestTable> tables;  // in the model's order
  std::vector<BoxTensor> boxes;
  std::string not_one_model = {};
  bool loaded = true;
  std::vector<ChangedList> lists = {};
};

// Host tensors are this rank's own; all others are the same on every rank, and rank 0 writes them.
struct ItemContents {
  ItemKind kind = ItemKind::kHostTensor;
  std::string name;
  std::string description;
  std::vector<DenseTensor> tensors;
  bool loaded = true;  // as of a collection
};

// base: of a delta, what it is a change of; rank 0's counts.
// states: does a delta have the states of optimizers, where there are any? The same on all ranks.
struct Contents {
  std::vector<CollectionContents> collections;
  std::vector<ItemContents> items;
  std::optional<ManifestBase> base = {};
  bool states = true;
};

// The model's tables as a manifest describes them, in the model's order.
std::vector<ManifestTable> manifest_tables(const plan::Model& model);

}  // namespace shardrec::checkpoint
