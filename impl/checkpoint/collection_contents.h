// A collection as checkpoints see it.
#pragma once

#include <memory>
#include <string>

#include "checkpoint/contents.h"
#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "embedding/collection.h"
#include "plan/plan.h"
#include "replica/sync.h"

namespace shardrec::checkpoint {

struct CollectionState {
  embedding::Collection& collection;
  replica::ReplicaSync* sync = nullptr;  // null: not on a mesh
  const plan::Plan& plan;                // of the sharding group
};

// What a save of the collection writes. Of a mesh the first replica has the boxes, others have
// none. Throws INVALID_STATE where replicas may differ, or where a load has left the tables filled
// in part.
CollectionContents contents_to_save(const CollectionState& state, const std::string& name);
// What a load fills: the boxes of this rank.
CollectionContents contents_to_load(const CollectionState& state, const std::string& name);
// Step, learning rates and what is frozen, as a load has found them.
void apply_loaded(const CollectionState& state, const CollectionContents& loaded) noexcept;

// The channels on which the ranks of a communicator save and load together. All ranks make theirs in
// the same order.
class GroupChannels {
 public:
  explicit GroupChannels(comm::Communicator& communicator)
      : collectives_(communicator.open_channel(comm::Purpose::kControl), communicator.rank(),
                     communicator.size()),
        channel_(communicator.open_channel(comm::Purpose::kControl)),
        rank_(communicator.rank()),
        size_(communicator.size()) {}

  Group group() { return {collectives_, *channel_, rank_, size_}; }

 private:
  comm::Collectives collectives_;
  std::shared_ptr<comm::Channel> channel_;
  int rank_;
  int size_;
};

}  // namespace shardrec::checkpoint
