// Keeps the replicas of a collection in step: the mean of weights and of every optimizer state over
// the ranks that hold the same boxes; compares them, and fills them from one of them.
//
// Thread rule: as the collection's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "core/error.h"
#include "embedding/collection.h"
#include "embedding/update_follower.h"
#include "training/continuation.h"
#include "training/mesh_groups.h"
#include "training/overlapped_means.h"
#include "training/replica_means.h"

namespace shardrec::training {

// With option SYNC_EVERY, updates end with a sync, as average() is, when so many have come behind the last one.
class ReplicaSync : public embedding::UpdateFollower {
 public:
  // mesh: all ranks of it; replicas: those that hold the same boxes. Not collective, but each rank
  // of the mesh makes its objects in the same order.
  ReplicaSync(std::shared_ptr<comm::Communicator> mesh,
              std::shared_ptr<comm::Communicator> replicas);

  // Makes what average() exchanges rows of the collection with, which begins to note its changed rows, if its options
  // say so. Collective over the mesh, once, before the calls below, which are about this collection. An error on one rank
  // is every rank's; one of the replicas' exchange ends the mesh and both groups of this rank.
  void connect(const std::shared_ptr<embedding::Collection>& collection,
               const comm::Operation& operation);
  // Do updates end with syncs? This object stays there then as long as lookups do.
  bool follows_updates() const noexcept { return collection_->follower() == this; }

  // Those below are collective over the mesh. The collections have the same model, plan and options. What all ranks of the mesh
  // refuse alike is a comm::AgreedError: all is as before. Any other error of an exchange, memory that runs out included, ends the mesh
  // and both groups of this rank: no peer waits for it, then or later, or trains on tables that are averaged or filled in
  // part. Where it was that a rank is gone or did not come in time, every later call throws the same. INVALID_STATE: while begin()
  // has not been followed by wait(), the others throw it, on this rank.

  // Throws DISAGREEMENT where steps or training settings differ.
  void average();
  // The same in two halves, between which training goes on (overlapped_means.h). Steps and settings are compared in both; wait()
  // may be called again then. Throws INVALID_STATE where nothing was begun.
  void begin();
  void wait();
  // Throws DISAGREEMENT where the copies of a table differ (replica_check.h).
  void check();
  // Every replica gets the tables, the number of steps and the settings of the one of that number; gradients that wait for
  // their step are dropped on all of them, and batches between forward and backward. Throws INVALID_ARGUMENT, DISAGREEMENT (another number on another rank).
  void fill(int32_t replica);

  // As continue_tables(), of the mesh.
  void continue_from(const EarlierTables& from);

  // Throws INVALID_STATE between begin() and wait().
  void require_no_means_under_way(const char* call) const;

  // Number of this rank's replica.
  int replica() const noexcept { return groups_.replicas()->rank(); }
  // Have the replicas the same tables, as after average(), at the start and after a load? Always, where all tables are
  // replicated, or all steps are those of all replicas.
  bool in_step() const {
    return alone() || exact() || !collection_->layout().any_cut() ||
           collection_->step() == step_in_common_;
  }
  void set_in_step() noexcept { set_in_step_of(collection_->step()); }

 private:
  bool alone() const noexcept { return groups_.replicas()->size() == 1; }
  // Do gradients of all replicas train each of them? There is nothing to average then.
  bool exact() const noexcept { return collection_->layout().groups().exact; }
  template <class Body>
  void or_end(const char* call, Body body);
  // Syncs where it is due. What it throws but for what all ranks refuse alike ends the groups of this rank.
  void updated() override;
  // Collective over the mesh.
  void average_now();
  // Replicas are equal as of a step: updates are counted from here on.
  void set_in_step_of(int64_t step) noexcept {
    step_in_common_ = step;
    updates_since_ = 0;
  }
  // Is a sync that was begun not waited for yet?
  bool means_under_way() const noexcept {
    return overlapped_ != nullptr && overlapped_->under_way();
  }
  // Throws where a call cannot begin on this rank.
  void require_ready(const char* call) const;
  void compare_settings(const comm::Operation& operation);
  // For begin(), where there is none.
  void connect_overlapped();

  const MeshGroups groups_;
  comm::Collectives of_mesh_;
  comm::Collectives of_replicas_;
  std::shared_ptr<comm::Channel> rows_channel_;        // null behind connect()
  std::shared_ptr<comm::Channel> overlapped_channel_;  // null: there is one replica
  std::shared_ptr<embedding::Collection> collection_;  // set by connect()
  std::unique_ptr<ReplicaMeans> means_;                // null: there is one replica
  std::unique_ptr<OverlappedMeans> overlapped_;        // null: no begin() has come so far
  int64_t step_in_common_ = 0;
  int64_t updates_since_ = 0;
  std::optional<core::Error> ended_;
};

}  // namespace shardrec::training
