#include "training/sync.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>
#include <vector>

#include "comm/collective/agree.h"

namespace shardrec::training {
namespace {

constexpr const char* kName = "sync";

constexpr comm::Operation kOperation{
    .name = kName, .kind = 1, .detail = 0, .deadline_kind = comm::DeadlineKind::kStep};

comm::Collectives collectives_on(comm::Communicator& group) {
  return {group.open_channel(comm::Purpose::kControl), group.rank(), group.size()};
}

}  // namespace

ReplicaSync::ReplicaSync(std::shared_ptr<comm::Communicator> mesh,
                         std::shared_ptr<comm::Communicator> replicas)
    : mesh_(std::move(mesh)),
      replicas_(std::move(replicas)),
      of_mesh_(collectives_on(*mesh_)),
      of_replicas_(collectives_on(*replicas_)),
      rows_channel_(replicas_->open_channel(comm::Purpose::kControl)) {}

// Runs body. An error that not all ranks of the mesh throw alike ends all groups of this rank,
// whose ranks would wait for it; where it says which rank is gone, later calls say the same, and
// not what these groups have heard of this rank's end.
template <class Body>
void ReplicaSync::or_end(embedding::Collection& collection, Body body) {
  comm::Communicator* const groups[] = {mesh_.get(), replicas_.get(), &collection.communicator()};
  try {
    body();
  } catch (const comm::AgreedError&) {
    throw;
  } catch (const core::Error& error) {
    for (comm::Communicator* group : groups) {
      // An abort stays an abort on its way to the other groups.
      if (error.status() == SHARDREC_ABORTED) {
        group->abort(error.sentence());
      } else {
        group->fail(kName);
      }
    }
    if (error.status() == SHARDREC_TIMEOUT || error.status() == SHARDREC_PEER_FAILED) {
      ended_.emplace(error);
    }
    throw;
  } catch (...) {
    for (comm::Communicator* group : groups) group->fail(kName);
    throw;
  }
}

void ReplicaSync::connect(const std::shared_ptr<embedding::Collection>& collection,
                          const comm::Operation& operation) {
  if (replicas_->size() == 1) return;
  or_end(*collection, [&] {
    const bool by_nccl = replicas_->device_bodies() == comm::DeviceBodies::kNccl;
    comm::agree_on_same(of_mesh_, operation, [&] {
      means_ = std::make_unique<ReplicaMeans>(replicas_, std::move(rows_channel_), collection);
      if (collection->options().replica_sync == SHARDREC_REPLICA_SYNC_TOUCHED) {
        collection->note_changed_rows();
      }
      return std::vector<comm::SharedValue>{
          {"what carries bodies between devices", by_nccl ? 1U : 0U}};
    });
    means_->connect(of_replicas_);
  });
}

void ReplicaSync::average(embedding::Collection& collection) {
  if (ended_) throw core::Error(*ended_);
  collection.require_whole();
  collection.ordered().require_nothing_posted(kName);
  if (replicas_->size() == 1) return;
  or_end(collection, [&] {
    // Nothing but the proof that the ranks of the sharding group are at one place in the call
    // order: they would wait for each other in different calls.
    const std::vector<comm::ConstBytes> nothing(
        static_cast<size_t>(collection.communicator().size()));
    collection.ordered().settle();
    collection.ordered().exchange(embedding::ExchangeKind::kSync, kName, 0, nothing, nullptr);
    collection.ordered().settle();
    compare_settings(collection);
    collection.synchronize();
    means_->average(of_replicas_, kOperation);
  });
  set_in_step(collection);
}

void ReplicaSync::compare_settings(embedding::Collection& collection) {
  std::vector<comm::SharedValue> values = {
      {"number of steps", static_cast<uint64_t>(collection.step())}};
  const embedding::TrainingSettings& settings = collection.settings();
  const auto& tables = collection.model().tables;
  for (size_t t = 0; t < tables.size(); ++t) {
    const auto table = static_cast<int32_t>(t);
    values.push_back(
        {"learning rate", std::bit_cast<uint64_t>(settings.learning_rate(table)), tables[t].name});
    values.push_back({"frozen flag", uint64_t{settings.frozen(table)}, tables[t].name});
  }
  comm::require_same(of_mesh_, kOperation, values);
}

}  // namespace shardrec::training
