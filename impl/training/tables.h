// Tables that are trained: this rank's collection and, on a mesh, what keeps its replicas in step. They are
// saved, loaded and synced as one thing.
//
// Thread rule: as the collection's.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "embedding/collection.h"
#include "plan/model/model.h"
#include "plan/plan.h"
#include "training/mesh.h"
#include "training/mesh_collection.h"
#include "training/sync.h"

namespace shardrec::training {

class Tables : public std::enable_shared_from_this<Tables> {
 public:
  // Collective over the communicator: as the collection's constructor. The plan is for its ranks.
  Tables(const std::shared_ptr<comm::Communicator>& communicator, const plan::Model& model,
         const plan::Plan& plan, const embedding::CollectionOptions& options);
  // Collective over a mesh: as make_collection(). world: all ranks of the mesh. The plan is for the ranks of
  // a sharding group.
  Tables(const std::shared_ptr<comm::Communicator>& world, const Mesh& mesh,
         comm::Collectives& collectives, const comm::Operation& operation, const plan::Model& model,
         const plan::Plan& plan, const embedding::CollectionOptions& options);

  embedding::Collection& collection() { return *collection_; }
  const embedding::Collection& collection() const { return *collection_; }
  const std::shared_ptr<embedding::Collection>& shared_collection() { return collection_; }
  // For lookups, which keep it alive, and these tables too where their updates end with syncs.
  std::shared_ptr<embedding::Collection> collection_of_lookups();
  const plan::Plan& plan() const { return collection_->layout().plan(); }

  // As ReplicaSync's calls; without a mesh, nothing.
  void sync();
  void sync_begin();
  void sync_wait();
  void fill_replicas(int32_t replica);
  // As ReplicaSync::check(); without a mesh, of the tables that are replicated over the communicator. Collective over it then.
  void check_replicas();
  // As continue_tables(), with the tables of another group that this rank has been in; null: of none. Collective over
  // the mesh, or the communicator.
  void continue_from(Tables* from);
  // Throws INVALID_STATE while a sync that was begun is not waited for.
  void require_no_sync(const char* call) const;

  // Does this rank write its rows when the tables are saved? One replica does, or each the states that it has. Throws INVALID_STATE
  // where replicas may differ, or where a load has left the tables filled in part.
  bool writes_rows() const;

  // Why a load of some of the tables would not leave all of them one model, as a sentence: an earlier load
  // has left them filled in part, or replicas may differ. Empty where neither is so.
  std::string not_one_model() const;

  // A load begins to fill the tables: until end_filling() they are refused to all that reads or
  // changes them.
  void begin_filling() noexcept { collection_->set_filled_in_part(true); }
  // All rows are there, of step `step`: gradients that were accumulated are dropped.
  void end_filling(int64_t step) noexcept;

 private:
  template <class Body>
  void on_all_ranks(const comm::Operation& operation, Body body);

  plan::Plan plan_;
  std::unique_ptr<ReplicaSync> replicas_;  // null: not on a mesh
  std::shared_ptr<embedding::Collection> collection_;
};

}  // namespace shardrec::training
