#include "training/tables.h"

#include <utility>

#include "comm/collective/agree.h"
#include "core/error.h"
#include "training/call_order.h"
#include "training/replica_check.h"

namespace shardrec::training {

Tables::Tables(const std::shared_ptr<comm::Communicator>& communicator, const plan::Model& model,
               const plan::Plan& plan, const embedding::CollectionOptions& options)
    : collection_(std::make_shared<embedding::Collection>(communicator, model, plan, options)) {}

// What may fail on this rank alone comes before the first collective part. The agreement's channel is opened whatever the
// options are, which are compared only then: the n-th channel of every rank is the same one.
Tables::Tables(const std::shared_ptr<comm::Communicator>& world, const Mesh& mesh,
               comm::Collectives& collectives, const comm::Operation& operation,
               const plan::Model& model, const plan::Plan& plan,
               const embedding::CollectionOptions& options)
    : replicas_(std::make_unique<ReplicaSync>(world, mesh.replicas)) {
  auto agreement = std::make_unique<embedding::ReplicaAgreement>(mesh.replicas);
  collection_ = make_collection({.ranks = collectives,
                                 .operation = operation,
                                 .world = world,
                                 .sharding = mesh.sharding,
                                 .groups = mesh.groups},
                                model, plan, options);
  replicas_->connect(collection_, operation);
  // A collection of all sharding groups decides by what all of its ranks say.
  const bool groups_decide = collection_->layout().groups().count == 1;
  if (options.non_finite == SHARDREC_NON_FINITE_SKIP && mesh.replicas->size() > 1 &&
      groups_decide) {
    collection_->decide_with(std::move(agreement));
  }
}

std::shared_ptr<embedding::Collection> Tables::collection_of_lookups() {
  if (replicas_ == nullptr || !replicas_->follows_updates()) return collection_;
  return {shared_from_this(), collection_.get()};
}

void Tables::sync() {
  if (replicas_ != nullptr) replicas_->average();
}

void Tables::sync_begin() {
  if (replicas_ != nullptr) replicas_->begin();
}

void Tables::sync_wait() {
  if (replicas_ != nullptr) replicas_->wait();
}

// Runs a call that is collective over the communicator of a collection without a mesh. An error that not all ranks
// throw alike ends it.
template <class Body>
void Tables::on_all_ranks(const comm::Operation& operation, Body body) {
  collection_->check_before(operation.name);
  collection_->ordered().require_nothing_posted(operation.name);
  try {
    prove_call_order(*collection_, operation);
    collection_->synchronize();
    body();
  } catch (const comm::AgreedError&) {
    throw;
  } catch (...) {
    collection_->give_up(operation.name);
    throw;
  }
}

void Tables::check_replicas() {
  if (replicas_ != nullptr) return replicas_->check();
  constexpr comm::Operation kCheckOfRanks{.name = "check_replicas",
                                          .kind = 4,
                                          .detail = 0,
                                          .deadline_kind = comm::DeadlineKind::kSetup};
  on_all_ranks(kCheckOfRanks, [&] {
    check_equal(*collection_, {.all = collection_->collectives(), .replicas = nullptr},
                kCheckOfRanks);
  });
}

void Tables::continue_from(Tables* from) {
  EarlierTables earlier;
  if (from != nullptr) {
    earlier = {.tables = &from->collection(),
               .in_step = from->replicas_ == nullptr || from->replicas_->in_step()};
  }
  if (replicas_ != nullptr) return replicas_->continue_from(earlier);
  constexpr comm::Operation kContinueOnRanks{
      .name = "continue_from", .kind = 6, .detail = 0, .deadline_kind = comm::DeadlineKind::kSetup};
  on_all_ranks(kContinueOnRanks, [&] {
    continue_tables(*collection_, earlier, {.all = collection_->collectives(), .replicas = nullptr},
                    kContinueOnRanks);
  });
}

void Tables::require_no_sync(const char* call) const {
  if (replicas_ != nullptr) replicas_->require_no_means_under_way(call);
}

void Tables::fill_replicas(int32_t replica) {
  if (replicas_ != nullptr) return replicas_->fill(replica);
  if (replica == 0) return;
  core::fail(SHARDREC_INVALID_ARGUMENT,
             core::sentence("replica is ", replica, "; without a mesh 0 is accepted"),
             {.value = int64_t{replica}, .limit = 1});
}

bool Tables::writes_rows() const {
  collection_->require_whole();
  if (replicas_ == nullptr) return true;
  if (!replicas_->in_step()) {
    core::fail(SHARDREC_INVALID_STATE,
               core::sentence("the replicas of the collection have taken steps since they were last"
                              " averaged, and one of them would be saved: call"
                              " shardrec_collection_sync_replicas first"));
  }
  return replicas_->replica() == 0 || collection_->layout().groups().share_states;
}

std::string Tables::not_one_model() const {
  if (collection_->filled_in_part()) {
    return "a load of this collection, or a step on its device, failed half-way, and its tables are"
           " filled in part: only a load of all tables with all their rows and states makes them"
           " whole";
  }
  if (replicas_ != nullptr && !replicas_->in_step()) {
    return "the replicas of the collection have taken steps since they were last averaged, and "
           "what a"
           " load leaves as it is would differ between them: call shardrec_collection_sync_replicas"
           " first";
  }
  return {};
}

void Tables::end_filling(int64_t step) noexcept {
  collection_->set_step(step);
  collection_->update().drop_accumulated();
  collection_->set_filled_in_part(false);
  if (replicas_ != nullptr) replicas_->set_in_step();
}

}  // namespace shardrec::training
