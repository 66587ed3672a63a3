#include "training/mesh_collection.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "comm/collective/agree.h"
#include "core/error.h"
#include "embedding/room.h"

namespace shardrec::training {
namespace {

bool any_replicated(const plan::Plan& plan) {
  return std::ranges::any_of(plan.tables, &plan::TablePlan::replicated);
}

// Are cut tables of all groups trained by the ids and gradients of all ranks?
bool takes_steps_together(const embedding::CollectionOptions& options) {
  return options.replica_sync == SHARDREC_REPLICA_SYNC_EXACT ||
         options.replica_sync == SHARDREC_REPLICA_SYNC_SHARDED;
}

void require_syncs(const embedding::CollectionOptions& options) {
  if (options.sync_every == 0 || !takes_steps_together(options)) return;
  core::fail(SHARDREC_INVALID_ARGUMENT,
             "option SYNC_EVERY does not go with REPLICA_SYNC EXACT or SHARDED: replicas are equal "
             "after each step"
             " then, and there is nothing to average",
             {.value = options.sync_every, .limit = 0});
}

// Replicas of several sharding groups may be made on one machine at once: a collection knows of its
// own group's memory only.
void require_room(const MeshRanks& own, const plan::Model& model, const plan::Plan& plan,
                  const embedding::CollectionOptions& options) {
  const comm::Communicator& sharding = *own.sharding;
  uint64_t bytes = 0;
  try {
    if (plan.topology.ranks == sharding.size()) {
      plan::check_tiling(plan, model);
      bytes = embedding::host_bytes(embedding::Layout(model, plan, sharding.rank()), options,
                                    own.groups.count);
    }
  } catch (const core::Error&) {  // a plan that the collection refuses, in its own words
  }
  const embedding::GatheredNeeds needs(own.ranks, own.operation, own.world->rank(), bytes);
  comm::agree(own.ranks, own.operation, [&] { needs.check(); });
}

// The tables of all sharding groups, where some are replicated, or all are trained by all ranks. What all ranks agree
// to refuse is every rank's error; any other error is of this rank alone, and ends the mesh, for the other ranks would
// wait for it.
std::shared_ptr<embedding::Collection> make_of_all_groups(
    const MeshRanks& own, const plan::Model& model, const plan::Plan& plan,
    const embedding::CollectionOptions& options) {
  try {
    embedding::ShardingGroups groups = own.groups;
    groups.exact = takes_steps_together(options);
    groups.share_states = options.replica_sync == SHARDREC_REPLICA_SYNC_SHARDED;
    return std::make_shared<embedding::Collection>(own.world, groups, model, plan, options);
  } catch (const comm::AgreedError&) {
    throw;
  } catch (...) {
    own.world->fail(own.operation.name);
    throw;
  }
}

// A replica, made by the ranks of a sharding group. What they agree to refuse is every rank's error
// on the mesh; any other error ends the mesh, for the other groups wait to hear of this one.
std::shared_ptr<embedding::Collection> make_replica(const MeshRanks& own, const plan::Model& model,
                                                    const plan::Plan& plan,
                                                    const embedding::CollectionOptions& options) {
  std::shared_ptr<embedding::Collection> made;
  std::optional<core::Error> refused;
  try {
    made = std::make_shared<embedding::Collection>(own.sharding, model, plan, options);
  } catch (const comm::AgreedError& error) {
    // The rank that it comes from tells it: its number on the mesh is another one.
    if (error.parts().rank == own.sharding->rank()) {
      refused.emplace(error.status(), core::sentence("in its sharding group, ", error.sentence()),
                      error.parts());
    }
  } catch (...) {
    own.world->fail(own.operation.name);
    throw;
  }
  comm::agree(own.ranks, own.operation, [&] {
    if (refused) throw core::Error(*refused);
  });
  return made;
}

}  // namespace

std::shared_ptr<embedding::Collection> make_collection(
    const MeshRanks& mesh, const plan::Model& model, const plan::Plan& plan,
    const embedding::CollectionOptions& options) {
  // The collection itself compares inside its sharding group only.
  comm::agree_on_same(mesh.ranks, mesh.operation, [&] {
    plan::check_tiling(plan, model);
    require_syncs(options);
    std::vector<comm::SharedValue> values = {{"model", plan::model_fingerprint(model)},
                                             {"plan", plan::plan_fingerprint(plan, model)}};
    for (const comm::SharedValue& option : embedding::shared_options(options)) {
      values.push_back(option);
    }
    return values;
  });
  const bool exact = takes_steps_together(options);
  if (mesh.groups.count > 1 && (exact || any_replicated(plan))) {
    return make_of_all_groups(mesh, model, plan, options);
  }
  require_room(mesh, model, plan, options);
  return make_replica(mesh, model, plan, options);
}

}  // namespace shardrec::training
