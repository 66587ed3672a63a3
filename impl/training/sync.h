// Keeps the replicas of a collection in step: the mean of weights and of every optimizer state over
// the ranks that hold the same boxes.
//
// Thread rule: as the collection's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "core/error.h"
#include "embedding/collection.h"
#include "training/replica_means.h"

namespace shardrec::training {

class ReplicaSync {
 public:
  // mesh: all ranks of it; replicas: those that hold the same boxes. Not collective, but each rank
  // of the mesh makes its objects in the same order.
  ReplicaSync(std::shared_ptr<comm::Communicator> mesh,
              std::shared_ptr<comm::Communicator> replicas);

  // Makes what average() exchanges rows of the collection with, which begins to note its changed rows, if its options
  // say so. Collective over the mesh, once. An error on one rank
  // is every rank's; one of the replicas' exchange ends the mesh and both groups of this rank.
  void connect(const std::shared_ptr<embedding::Collection>& collection,
               const comm::Operation& operation);

  // Collective over the mesh. The collections have the same model, plan and options. Where steps or
  // training settings differ, every rank of the mesh throws comm::AgreedError (DISAGREEMENT) and all is
  // as before. Any other error, memory that runs out included, ends the mesh and both groups of
  // this rank: no peer waits for it, then or later, or trains on tables that are averaged in part. Where it was that a rank is gone or did not come in time, every later call throws the same.
  void average(embedding::Collection& collection);

  // Number of this rank's replica.
  int replica() const noexcept { return replicas_->rank(); }
  // Have the replicas the same tables, as after average(), at the start and after a load? Always, where all tables are
  // replicated.
  bool in_step(const embedding::Collection& collection) const {
    return replicas_->size() == 1 || !collection.layout().any_cut() ||
           collection.step() == step_in_common_;
  }
  void set_in_step(const embedding::Collection& collection) noexcept {
    step_in_common_ = collection.step();
  }

 private:
  template <class Body>
  void or_end(embedding::Collection& collection, Body body);
  void compare_settings(embedding::Collection& collection);

  std::shared_ptr<comm::Communicator> mesh_;
  std::shared_ptr<comm::Communicator> replicas_;
  comm::Collectives of_mesh_;
  comm::Collectives of_replicas_;
  std::shared_ptr<comm::Channel> rows_channel_;  // null behind connect()
  std::unique_ptr<ReplicaMeans> means_;          // null: there is one replica
  int64_t step_in_common_ = 0;
  std::optional<core::Error> ended_;
};

}  // namespace shardrec::training
