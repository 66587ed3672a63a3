#include "embedding/collection.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "comm/collective/agree.h"
#include "comm/ipc/carrier.h"
#include "comm/nccl/carrier.h"
#include "compute/cpu/kernels/dispatch.h"
#include "compute/probe/profile_cache.h"
#include "embedding/batch/operations_scope.h"
#include "embedding/room.h"

namespace shardrec::embedding {
namespace {

constexpr comm::Operation kCreate{.name = "collection_create",
                                  .kind = 1,
                                  .detail = 0,
                                  .deadline_kind = comm::DeadlineKind::kSetup};

}  // namespace

uint64_t host_bytes(const Layout& layout, const CollectionOptions& options, int replicas) {
  const bool notes_rows = replicas > 1 && options.replica_sync == SHARDREC_REPLICA_SYNC_TOUCHED;
  return (options.on_host() ? shard_bytes(layout) : 0) + step_bytes(layout, options.lookups) +
         (notes_rows ? ChangedRows::host_bytes(layout, options.on_host()) : 0);
}

Collection::Collection(std::shared_ptr<comm::Communicator> communicator,
                       const ShardingGroups& groups, const plan::Model& model,
                       const plan::Plan& plan, const CollectionOptions& options)
    : communicator_(std::move(communicator)),
      options_(options),
      counters_(model.tables.size(), static_cast<size_t>(communicator_->size())) {
  const int rank = communicator_->rank();
  const int size = communicator_->size();
  counters_.track.rank = rank;
  compute::memory_profile();  // its file is read now, not in the first step
  collectives_ = std::make_unique<comm::Collectives>(
      communicator_->open_channel(comm::Purpose::kControl), rank, size);
  std::shared_ptr<comm::Channel> channel = communicator_->open_channel(comm::Purpose::kOutput);

  comm::agree_on_same(*collectives_, kCreate, [&] {
    compute::require_cpu_target();
    if (plan.topology.ranks != groups.size) {
      core::fail(SHARDREC_INVALID_ARGUMENT,
                 core::sentence("the plan is for ", plan.topology.ranks, " ranks, the ",
                                groups.count == 1 ? "communicator" : "sharding group", " has ",
                                groups.size),
                 {.value = int64_t{plan.topology.ranks}, .limit = int64_t{groups.size}});
    }
    plan::check_tiling(plan, model);
    if (options_.hierarchical.value_or(false) &&
        options_.forward_compression != SHARDREC_COMPRESSION_NONE) {
      core::fail(SHARDREC_UNSUPPORTED,
                 "option HIERARCHICAL does not go with FORWARD_COMPRESSION: sums that are added up "
                 "before they cross would be rounded twice");
    }
    if (options_.hierarchical.value_or(false) && groups.count > 1) {
      core::fail(
          SHARDREC_UNSUPPORTED,
          "option HIERARCHICAL does not go with replicated tables on a mesh, nor with REPLICA_SYNC "
          "EXACT or SHARDED: partial sums of their collections are not added up on nodes");
    }
    if (groups.count > 1) options_.hierarchical = false;
    layout_ = std::make_unique<Layout>(model, plan, groups, rank, sums_on_nodes());
    if (options_.threads == 0) options_.threads = communicator_->default_threads();
    threads_ = std::make_unique<core::Threads>(options_.threads);
    const bool in_process = communicator_->reads_in_place();
    std::shared_ptr<comm::nccl::StopWord> stop;
    if (bodies_go_by_nccl()) stop = std::make_shared<comm::nccl::StopWord>(communicator_);
    stop_ = stop;
    backend_ = compute::backend_named(options_.backend)
                   .make({.threads = *threads_,
                          .device = options_.device,
                          .peers_in_process = in_process && stop == nullptr,
                          .alone = in_process && size == 1,
                          .wait = options_.device_wait,
                          .booked = counters_.buffer_bytes,
                          .stop = stop});
    bodies_ = stop == nullptr
                  ? comm::ipc::make_carrier(*backend_, communicator_, counters_.buffer_bytes)
                  : comm::nccl::make_carrier(*backend_, communicator_, std::move(stop));
    ordered_ = std::make_unique<OrderedChannel>(
        bodies_->over(std::move(channel), comm::Purpose::kOutput), size, *bodies_);
    counters_.clock = backend_->time_operations(counters_.nanoseconds);
    return shared_values(plan);
  });
  bodies_->connect(*collectives_);
  const GatheredNeeds needs(*collectives_, kCreate, rank,
                            host_bytes(*layout_, options_, groups.count));
  comm::agree(*collectives_, kCreate, [&] { needs.check(); });
  comm::agree(*collectives_, kCreate, [&] {
    shards_.reserve(layout_->parts_of(rank).size());  // a new one reads those before
    for (const int32_t part : layout_->parts_of(rank)) {
      shards_.emplace_back(*layout_, part, *backend_->memory(), shards_);
      shards_.back().fill(*layout_, options_.seed, *backend_);
    }
    backend_->wait();
    settings_ = std::make_unique<TrainingSettings>(this->model(), options_.seed);
    update_ = std::make_unique<Update>(context());
  });
}

// Operations end before the views that they read are let go of.
Collection::~Collection() {
  if (backend_ != nullptr) finish_operations(*backend_);
}

StepContext Collection::context() {
  return {.layout = *layout_,
          .options = options_,
          .communicator = *communicator_,
          .bodies = *bodies_,
          .shards = shards_,
          .settings = *settings_,
          .counters = counters_,
          .ordered = *ordered_,
          .snapshot = snapshot_,
          .changed_rows = changed_rows_,
          .scratch = scratch_,
          .replicas = replicas_.get()};
}

void Collection::give_up(const char* operation) noexcept {
  communicator_->fail(operation);
  if (replicas_ != nullptr) replicas_->give_up(operation);
}

bool Collection::bodies_go_by_nccl() const {
  return communicator_->device_bodies() == comm::DeviceBodies::kNccl && !options_.on_host() &&
         communicator_->size() > 1;
}

// The same on all ranks, where the option is: one process has all ranks or none has.
bool Collection::sums_on_nodes() const {
  return options_.forward_compression == SHARDREC_COMPRESSION_NONE &&
         options_.hierarchical.value_or(communicator_->ranks_in_process() < communicator_->size());
}

std::vector<comm::SharedValue> Collection::shared_values(const plan::Plan& plan) const {
  std::vector<comm::SharedValue> values = {
      {"model", plan::model_fingerprint(model())},
      {"plan", plan::plan_fingerprint(plan, model())},
      {"option LOOKUPS", static_cast<uint64_t>(options_.lookups)},
      {"option HIERARCHICAL", static_cast<uint64_t>(sums_on_nodes())},
      {"what carries bodies between devices", bodies_go_by_nccl() ? 1U : 0U}};
  for (const comm::SharedValue& option : shared_options(options_)) values.push_back(option);
  return values;
}

int64_t Collection::table_bytes() const {
  size_t bytes = 0;
  for (const Shard& shard : shards_) bytes += shard.memory();
  return static_cast<int64_t>(bytes);
}

std::shared_ptr<Snapshot> Collection::take_snapshot(const SnapshotOf& of) {
  require_no_snapshot("commit_begin");
  auto taken = std::make_shared<Snapshot>(layout(), shards_, *backend_, counters_.buffer_bytes, of);
  snapshot_.put(taken);
  return taken;
}

void Collection::require_no_snapshot(const char* call) {
  if (snapshot_.current() == nullptr) return;
  core::fail(
      SHARDREC_INVALID_STATE,
      core::sentence(call,
                     " was called while a commit of the collection's tables is being written: call"
                     " shardrec_checkpoint_commit_wait until it is over"),
      {.operation = call});
}

std::shared_ptr<const RowMark> Collection::mark_rows() {
  require_no_backward();
  synchronize();
  return changed_rows_.mark(layout(), shards_, *backend_, counters_.buffer_bytes);
}

void Collection::gather_changed_rows() {
  require_no_backward();
  synchronize();
  changed_rows_.gather(*backend_);
}

void Collection::require_no_backward() const {
  if (!in_backward_) return;
  core::fail(
      SHARDREC_INVALID_STATE,
      "a backward is under way on this collection: call shardrec_lookup_backward_wait first");
}

void Collection::require_whole() const {
  require_no_backward();
  require_filled();
}

void Collection::require_filled() const {
  if (backend_->has_lost()) {
    core::fail(
        SHARDREC_INVALID_STATE,
        "updates of this collection did not take place on its device, for want of memory or as"
        " it failed, and its tables may have a part of a step: load a checkpoint before anything"
        " else");
  }
  if (!filled_in_part_) return;
  core::fail(SHARDREC_INVALID_STATE,
             "a load of this collection failed half-way, and its tables are filled in part: load a"
             " checkpoint before anything else");
}

void Collection::check_before(const char* call) const {
  require_whole();
  try {
    communicator_->check_before(call);
  } catch (...) {
    // The ranks with the same boxes are in other sharding groups, which live and wait.
    if (replicas_ != nullptr) replicas_->give_up(call);
    throw;
  }
}

int Collection::take_lookup() {
  uint64_t taken = lookups_taken_.load();
  int number = 0;
  do {
    number = std::countr_one(taken);
    if (number >= options_.lookups) {
      core::fail(SHARDREC_INVALID_STATE,
                 core::sentence("the collection has ", options_.lookups,
                                " lookups already: destroy one, or raise the option LOOKUPS"),
                 {.limit = int64_t{options_.lookups}});
    }
  } while (!lookups_taken_.compare_exchange_weak(taken, taken | (uint64_t{1} << number)));
  return number;
}

void Collection::give_back_lookup(int number) noexcept {
  lookups_taken_.fetch_and(~(uint64_t{1} << number));
}

}  // namespace shardrec::embedding
