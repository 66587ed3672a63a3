#include "training/sync.h"

#include <bit>
#include <utility>
#include <vector>

#include "comm/collective/agree.h"
#include "training/call_order.h"
#include "training/replica_check.h"
#include "training/replica_fill.h"

namespace shardrec::training {
namespace {

constexpr comm::Operation operation_named(const char* name, uint32_t kind,
                                          comm::DeadlineKind deadline = comm::DeadlineKind::kStep) {
  return {.name = name, .kind = kind, .detail = 0, .deadline_kind = deadline};
}

constexpr comm::Operation kAverage = operation_named("sync", 1);
constexpr comm::Operation kBegin = operation_named("sync_begin", 2);
constexpr comm::Operation kWait = operation_named("sync_wait", 3);
constexpr comm::Operation kCheck = operation_named("check_replicas", 4, comm::DeadlineKind::kSetup);
constexpr comm::Operation kFill = operation_named("replica_fill", 5, comm::DeadlineKind::kSetup);
constexpr comm::Operation kContinue =
    operation_named("continue_from", 6, comm::DeadlineKind::kSetup);

comm::Collectives collectives_on(comm::Communicator& group) {
  return {group.open_channel(comm::Purpose::kControl), group.rank(), group.size()};
}

}  // namespace

ReplicaSync::ReplicaSync(std::shared_ptr<comm::Communicator> mesh,
                         std::shared_ptr<comm::Communicator> replicas)
    : groups_(std::move(mesh), std::move(replicas)),
      of_mesh_(collectives_on(groups_.mesh())),
      of_replicas_(collectives_on(*groups_.replicas())),
      rows_channel_(groups_.replicas()->open_channel(comm::Purpose::kControl)) {
  if (!alone()) overlapped_channel_ = groups_.replicas()->open_channel(comm::Purpose::kControl);
}

// Runs body. An error that not all ranks of the mesh throw alike ends all groups of this rank,
// whose ranks would wait for it; where it says which rank is gone, later calls say the same, and
// not what these groups have heard of this rank's end.
template <class Body>
void ReplicaSync::or_end(const char* call, Body body) {
  comm::Communicator& of_collection = collection_->communicator();
  try {
    body();
  } catch (const comm::AgreedError&) {
    throw;
  } catch (const core::Error& error) {
    groups_.end(of_collection, call, &error);
    if (error.status() == SHARDREC_TIMEOUT || error.status() == SHARDREC_PEER_FAILED) {
      ended_.emplace(error);
    }
    throw;
  } catch (...) {
    groups_.end(of_collection, call, nullptr);
    throw;
  }
}

void ReplicaSync::connect(const std::shared_ptr<embedding::Collection>& collection,
                          const comm::Operation& operation) {
  collection_ = collection;
  if (alone()) return;
  or_end(kAverage.name, [&] {
    const auto& replicas = groups_.replicas();
    const bool by_nccl = replicas->device_bodies() == comm::DeviceBodies::kNccl;
    comm::agree_on_same(of_mesh_, operation, [&] {
      means_ = std::make_unique<ReplicaMeans>(replicas, std::move(rows_channel_), collection);
      if (collection->options().replica_sync == SHARDREC_REPLICA_SYNC_TOUCHED) {
        collection->note_changed_rows();
      }
      return std::vector<comm::SharedValue>{
          {"what carries bodies between devices", by_nccl ? 1U : 0U}};
    });
    means_->connect(of_replicas_);
  });
  if (collection_->options().sync_every > 0) collection_->follow_updates(this);
}

void ReplicaSync::average() {
  require_ready(kAverage.name);
  require_no_means_under_way("sync_replicas");
  if (alone()) return;
  or_end(kAverage.name, [&] { average_now(); });
  set_in_step();
}

void ReplicaSync::average_now() {
  prove_call_order(*collection_, kAverage);
  compare_settings(kAverage);
  if (exact()) return;
  collection_->synchronize();
  means_->average(of_replicas_, kAverage);
}

void ReplicaSync::updated() {
  ++updates_since_;
  if (updates_since_ < collection_->options().sync_every || means_under_way()) return;
  or_end(kAverage.name, [&] {
    if (ended_) throw core::Error(*ended_);
    collection_->require_filled();
    average_now();
  });
  set_in_step();
}

void ReplicaSync::begin() {
  require_ready(kBegin.name);
  require_no_means_under_way(kBegin.name);
  if (alone()) return;
  or_end(kBegin.name, [&] {
    prove_call_order(*collection_, kBegin);
    compare_settings(kBegin);
    if (exact()) return;
    if (overlapped_ == nullptr) connect_overlapped();
    collection_->synchronize();
    overlapped_->gather(of_replicas_, kBegin);
    try {
      comm::agree(of_mesh_, kBegin, [&] { overlapped_->prepare(); });
    } catch (const comm::AgreedError&) {
      // It may hold what others had no room for. The next one is made anew.
      overlapped_.reset();
      throw;
    }
    overlapped_->start(kAverage);
  });
}

void ReplicaSync::wait() {
  require_ready(kWait.name);
  if (alone() || exact()) return;
  if (!means_under_way()) {
    groups_.mesh().check_before(kWait.name);
    core::fail(SHARDREC_INVALID_STATE,
               "sync_wait was called where no sync is under way: call"
               " shardrec_collection_sync_begin first",
               {.operation = kWait.name});
  }
  or_end(kWait.name, [&] {
    overlapped_->wait();
    prove_call_order(*collection_, kWait);
    // From here on all ranks have all means.
    compare_settings(kWait);
    collection_->synchronize();
    overlapped_->apply();
  });
  set_in_step_of(overlapped_->step());
}

void ReplicaSync::connect_overlapped() {
  std::unique_ptr<OverlappedMeans> made;
  comm::agree(of_mesh_, kBegin, [&] {
    const bool on_device =
        collection_->backend().caller_devices().cuda != core::DeviceSet::kNoDevice;
    if (on_device && groups_.replicas()->device_bodies() == comm::DeviceBodies::kNccl) {
      core::fail(SHARDREC_UNSUPPORTED,
                 "a sync that overlaps with training does not go over NCCL: its exchanges and those"
                 " of steps would be under way at once, in orders that ranks do not share; call"
                 " shardrec_collection_sync_replicas",
                 {.operation = kBegin.name});
    }
    made = std::make_unique<OverlappedMeans>(groups_, overlapped_channel_, collection_);
  });
  made->connect(of_replicas_);
  overlapped_ = std::move(made);
}

void ReplicaSync::check() {
  require_ready(kCheck.name);
  require_no_means_under_way(kCheck.name);
  or_end(kCheck.name, [&] {
    prove_call_order(*collection_, kCheck);
    collection_->synchronize();
    check_equal(*collection_, {.all = of_mesh_, .replicas = &of_replicas_}, kCheck);
  });
}

void ReplicaSync::fill(int32_t replica) {
  require_ready(kFill.name);
  require_no_means_under_way(kFill.name);
  or_end(kFill.name, [&] {
    prove_call_order(*collection_, kFill);
    comm::agree_on_same(of_mesh_, kFill, [&] {
      if (replica < 0 || replica >= of_replicas_.size()) {
        core::fail(SHARDREC_INVALID_ARGUMENT,
                   core::sentence("replica is ", replica, "; 0 to ", of_replicas_.size() - 1,
                                  " are accepted"),
                   {.value = int64_t{replica}, .limit = int64_t{of_replicas_.size()}});
      }
      return std::vector<comm::SharedValue>{{"replica", static_cast<uint64_t>(replica)}};
    });
    if (alone()) return;
    collection_->synchronize();
    fill_replicas(*collection_, of_replicas_, replica, kFill);
    // The next step's deadline is shorter, and its ranks are of other replica groups.
    of_mesh_.barrier(kFill);
  });
  set_in_step();
}

void ReplicaSync::continue_from(const EarlierTables& from) {
  require_ready(kContinue.name);
  require_no_means_under_way(kContinue.name);
  bool equal = false;
  or_end(kContinue.name, [&] {
    prove_call_order(*collection_, kContinue);
    collection_->synchronize();
    equal = continue_tables(*collection_, from,
                            {.all = of_mesh_, .replicas = alone() ? nullptr : &of_replicas_},
                            kContinue);
    of_mesh_.barrier(kContinue);  // as behind a fill
  });
  embedding::ChangedRows& changed = collection_->changed_rows();
  if (equal) {
    changed.clear();
    set_in_step();
  } else {
    // Which rows differ is not known: the next sync moves all of them.
    const auto shards = collection_->shards();
    for (size_t s = 0; s < shards.size(); ++s) changed.add_range(s, 0, shards[s].rows());
    set_in_step_of(-1);
  }
}

void ReplicaSync::require_ready(const char* call) const {
  if (ended_) throw core::Error(*ended_);
  collection_->require_whole();
  collection_->ordered().require_nothing_posted(call);
}

void ReplicaSync::require_no_means_under_way(const char* call) const {
  if (!means_under_way()) return;
  groups_.mesh().check_before(call);
  core::fail(SHARDREC_INVALID_STATE,
             core::sentence(call,
                            " was called while a sync of the collection's replicas is under way:"
                            " call shardrec_collection_sync_wait first"),
             {.operation = call});
}

void ReplicaSync::compare_settings(const comm::Operation& operation) {
  std::vector<comm::SharedValue> values = {
      {"number of steps", static_cast<uint64_t>(collection_->step())}};
  const embedding::TrainingSettings& settings = collection_->settings();
  const auto& tables = collection_->model().tables;
  for (size_t t = 0; t < tables.size(); ++t) {
    const auto table = static_cast<int32_t>(t);
    values.push_back(
        {"learning rate", std::bit_cast<uint64_t>(settings.learning_rate(table)), tables[t].name});
    values.push_back({"frozen flag", uint64_t{settings.frozen(table)}, tables[t].name});
  }
  comm::require_same(of_mesh_, operation, values);
}

}  // namespace shardrec::training
