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

  // Collective over the mesh. The collections have the same model and plan. An error, memory that
  // runs out included, ends both groups of this rank: no peer waits for it or trains on tables that
  // are averaged in part.
  void average(embedding::Collection& collection);

 private:
  void average_pieces(embedding::Collection& collection);

  std::shared_ptr<comm::Communicator> replicas_;
  comm::Collectives collectives_;
  core::Scratch rows_;  // a block of rows, side by side
};

}  // namespace shardrec::replica
