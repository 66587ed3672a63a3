// Keeps the replicas of a collection in step: the mean of weights and of every optimizer state over
// the ranks that hold the same boxes.
//
// Thread rule: as the collection's.
#pragma once

#include <memory>

#include "comm/collectives.h"
#include "comm/communicator.h"
#include "embedding/collection.h"

namespace shardrec::replica {

class ReplicaSync {
 public:
  explicit ReplicaSync(std::shared_ptr<comm::Communicator> replicas);

  // Collective over the replica group. The collections have the same model and plan.
  void average(embedding::Collection& collection);

  comm::Communicator& communicator() { return *replicas_; }

 private:
  std::shared_ptr<comm::Communicator> replicas_;
  comm::Collectives collectives_;
  core::Scratch rows_;  // a block of rows, side by side
};

}  // namespace shardrec::replica
