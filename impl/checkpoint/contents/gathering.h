// Gathers what was added to a checkpoint into the contents of one commit or load.
//
// What is added is referred to. From add() to the end of the commit or load it stays in place and
// nobody else uses it. Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/contents/collection_contents.h"
#include "checkpoint/contents/contents.h"
#include "checkpoint/contents/ddp_parameters.h"
#include "checkpoint/contents/frozen.h"
#include "checkpoint/contents/fsdp_parameters.h"
#include "checkpoint/contents/host_tensors.h"
#include "checkpoint/contents/layers.h"
#include "dense/ddp/ddp.h"
#include "dense/fsdp/fsdp.h"
#include "dense/layers/layer_units.h"
#include "dense/layers/mlp.h"
#include "embedding/collection.h"

namespace shardrec::checkpoint {

// The rows of a collection that change after a commit.
struct MarkedTables {
  std::string name;
  std::weak_ptr<embedding::Collection> collection;
  std::shared_ptr<const embedding::RowMark> mark;
};

class Gathering {
 public:
  void add(const std::string& name, training::Tables& tables);
  void add(const std::string& name, dense::Ddp& parameters);
  void add(const std::string& name, dense::Fsdp& parameters);
  // Behind all sharded sets: that of a stack whose parameters are sharded is entered, where it was not added. Throws
  // INVALID_ARGUMENT where the set is of other ranks than `communicator`, and what FsdpEntry::enter() does.
  void add(const std::string& name, dense::Mlp& layers, const comm::Communicator& communicator);

  // Names the sharded sets and stacks; ranks that have the same may call gather_shards().
  std::string names_of_sharded() const;
  // Collective, before a commit writes, or a load fills, what to_save() or to_load() has given: sharded
  // sets are whole in it from then on.
  void gather_shards();

  // What a commit writes: collections, layers, parameters, each in the order in which they were
  // added, then the host tensors by name. Throws INVALID_STATE where there is none of all that, and
  // what contents_to_save() does.
  Contents to_save(const HostTensors& tensors) const;
  // What a delta writes: of the collections the rows that have changed since the marks, of all else what to_save()
  // has. The marks are of what was added.
  Contents changes_to_save(const HostTensors& tensors, std::span<const MarkedTables> since,
                           DeltaStates states) const;
  // Marks for the changes that come from now on; marks that were made before know of those until now. Throws what
  // embedding::Collection::mark_rows() does.
  std::vector<MarkedTables> mark() const;
  // Are the marks of the collections that were added, under the same names?
  bool is_of(std::span<const MarkedTables> marked) const noexcept;
  // Makes such contents independent of what was added: it may change while they are written, as long as the
  // result is there. Throws what Frozen::add() does. bytes_to_freeze(): what that takes of the host's memory.
  std::unique_ptr<Frozen> freeze(Contents& contents) const;
  uint64_t bytes_to_freeze(const Contents& contents) const;
  // What a load fills; host tensors are read one by one instead. Throws INVALID_STATE where nothing
  // was added.
  Contents to_load() const;

  // Before the first byte of a table changes, and when all are there: the collections that are loaded are
  // marked as filled in part, then set to the steps and settings that were loaded. wanted, loaded: of to_load().
  void begin_filling(const Contents& wanted) const noexcept;
  void apply(const Contents& loaded) noexcept;

 private:
  dense::Fsdp* set_of(const std::string& name, const dense::Mlp& layers,
                      const comm::Communicator& communicator);
  void require_any(bool others) const;
  template <class ContentsOf>
  Contents contents_with(const HostTensors& tensors, ContentsOf contents_of) const;
  void add_dense(Contents& contents, bool to_load) const;

  std::vector<std::pair<std::string, training::Tables*>> tables_;
  std::vector<std::pair<std::string, LayersState>> layers_;
  std::vector<std::pair<std::string, DdpState>> parameters_;
  std::vector<std::pair<std::string, FsdpState>> sharded_;
  std::list<dense::LayerUnitsUse> units_;  // of stacks whose sets were not added
  std::vector<dense::Fsdp*> sets_;         // that were added or entered
};

}  // namespace shardrec::checkpoint
