// A rank's share of the sharded tables, with what its lookups' steps work with: back end, carrier of
// bodies, ordered channel, settings, counters.
//
// Thread rule: one thread at a time for a collection and all its lookups; counters() any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "comm/bodies/carrier.h"
#include "comm/collective/agree.h"
#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "compute/backend.h"
#include "core/threads.h"
#include "embedding/backward/replica_agreement.h"
#include "embedding/backward/update.h"
#include "embedding/exchange/ordered_channel.h"
#include "embedding/exchange/step_context.h"
#include "embedding/tables/changed_rows.h"
#include "embedding/tables/counters.h"
#include "embedding/tables/layout.h"
#include "embedding/tables/settings.h"
#include "embedding/tables/shard.h"
#include "embedding/tables/snapshot.h"
#include "embedding/update_follower.h"
#include "plan/model/model.h"
#include "plan/plan.h"
#include "shardrec/collection.h"

namespace shardrec::embedding {

// What the tables of the layout's rank, and its steps, take of the host's memory; and the bits of changed rows, where
// there are several replicas to be synced.
uint64_t host_bytes(const Layout& layout, const CollectionOptions& options, int replicas);

class Collection {
 public:
  // Collective: checks that all ranks bring the same, allocates and fills. An error on one rank is
  // every rank's. groups: the communicator's ranks; the plan is for the ranks of one of them.
  Collection(std::shared_ptr<comm::Communicator> communicator, const ShardingGroups& groups,
             const plan::Model& model, const plan::Plan& plan, const CollectionOptions& options);
  // The same where the communicator is one group.
  Collection(const std::shared_ptr<comm::Communicator>& communicator, const plan::Model& model,
             const plan::Plan& plan, const CollectionOptions& options)
      : Collection(communicator, {.count = 1, .size = communicator->size()}, model, plan, options) {
  }
  ~Collection();
  Collection(const Collection&) = delete;
  Collection& operator=(const Collection&) = delete;

  const Layout& layout() const { return *layout_; }
  const plan::Model& model() const { return layout_->model(); }
  const CollectionOptions& options() const { return options_; }
  comm::Communicator& communicator() { return *communicator_; }
  comm::Collectives& collectives() { return *collectives_; }
  std::span<Shard> shards() { return shards_; }
  core::Threads& threads() { return *threads_; }
  const core::Threads& threads() const { return *threads_; }
  compute::Backend& backend() { return *backend_; }
  comm::BodyCarrier& bodies() { return *bodies_; }
  Update& update() { return *update_; }
  Counters& counters() { return counters_; }
  // Of a table, with all steps; may wait for the operations of the last one. Any thread.
  const TableCounters& table_counters(int32_t table) {
    update_->count_rows();
    return counters_.tables[static_cast<size_t>(table)];
  }
  const Counters& counters() const { return counters_; }
  // Where other ranks failed while the device was behind the host, waits for it.
  int64_t step() const {
    const int64_t called = counters_.steps.load(std::memory_order_relaxed);
    if (stop_ == nullptr) return called;
    return called - stop_->left_out(counters_.updates.load(std::memory_order_relaxed));
  }
  void set_step(int64_t step) { counters_.steps.store(step, std::memory_order_relaxed); }
  TrainingSettings& settings() { return *settings_; }
  int64_t table_bytes() const;
  // A load that failed after it had begun to fill the tables says so here, on all ranks, until one
  // succeeds. For marks all rows have changed then.
  void set_filled_in_part(bool in_part) noexcept {
    filled_in_part_ = in_part;
    if (!in_part) backend_->forget_lost();
    loads_ += in_part ? 1 : 0;
    if (in_part) changed_rows_.add_all_to_marks(shards_);
  }
  // Or: the device has lost a part of a step.
  bool filled_in_part() const { return filled_in_part_ || backend_->has_lost(); }
  // What writes rows, but for steps and loads, says when it begins on this rank, and when all are written, on each rank that
  // takes part. An error in between leaves it begun.
  void begin_rewrite() noexcept { rewrites_ |= 1; }
  void end_rewrite() noexcept { rewrites_ = (rewrites_ | 1) + 1; }
  // Odd: begun, and not ended. Ranks with the same even number hold rows of the same state.
  uint64_t rewrites() const noexcept { return rewrites_; }
  // Those that have begun to fill the tables, the same number on all ranks.
  uint64_t loads() const noexcept { return loads_; }
  // A backward is under way on a thread of the library: nobody else reads or changes the tables.
  void set_in_backward(bool in_backward) noexcept { in_backward_ = in_backward; }
  void require_no_backward() const;  // throws INVALID_STATE
  // Throws INVALID_STATE where the tables are filled in part.
  void require_filled() const;
  // Who reads or changes the tables asks first: throws INVALID_STATE where they are filled in part, or a
  // backward is under way.
  void require_whole() const;
  // The same, for a call that takes part in exchanges: throws also what killed the communicator, as give_up() does.
  void check_before(const char* call) const;
  // Of the tables as they are now, as far as `of` says. Its reader ends it. Throws
  // INVALID_STATE where there is one already, OUT_OF_MEMORY.
  std::shared_ptr<Snapshot> take_snapshot(const SnapshotOf& of = {});
  // Throws INVALID_STATE while there is a snapshot.
  void require_no_snapshot(const char* call);
  // Who changes rows tells it.
  SnapshotPlace& snapshot() { return snapshot_; }
  // From now on the rows that change are noted. Before lookups are made. Throws OUT_OF_MEMORY.
  void note_changed_rows() {
    changed_rows_.begin(layout(), shards_, *backend_, counters_.buffer_bytes);
  }
  ChangedRows& changed_rows() { return changed_rows_; }
  // Rows that change from now on are noted for the mark, as long as it is there. Waits for operations. Throws
  // INVALID_STATE (a backward is under way), OUT_OF_MEMORY.
  std::shared_ptr<const RowMark> mark_rows();
  // Marks know of all rows that have changed until now. Waits for operations. Throws INVALID_STATE, as mark_rows().
  void gather_changed_rows();
  OrderedChannel& ordered() { return *ordered_; }
  // From now on a step is applied where the sharding groups of all replicas apply it. Before lookups are made.
  void decide_with(std::unique_ptr<ReplicaAgreement> replicas) noexcept {
    replicas_ = std::move(replicas);
  }
  // Is told of each update from now on; it stays there as long as lookups do. Before lookups are made.
  void follow_updates(UpdateFollower* follower) noexcept { follower_ = follower; }
  UpdateFollower* follower() const noexcept { return follower_; }
  // This rank does not take part in a step that others wait for.
  void give_up(const char* operation) noexcept;
  // For the stages of its lookups' steps, which it outlives.
  StepContext context();
  // Waits for the operations of the back end.
  void synchronize() { backend_->wait(); }

  // Room for a lookup: its number. Throws INVALID_STATE when all are taken.
  int take_lookup();
  void give_back_lookup(int number) noexcept;
  // Number of lookups made so far: names a lookup on all ranks.
  uint64_t next_lookup_name() { return lookups_made_++; }

 private:
  bool sums_on_nodes() const;
  bool bodies_go_by_nccl() const;
  std::vector<comm::SharedValue> shared_values(const plan::Plan& plan) const;

  std::shared_ptr<comm::Communicator> communicator_;
  CollectionOptions options_;
  std::unique_ptr<comm::Collectives> collectives_;
  std::unique_ptr<Layout> layout_;
  std::unique_ptr<core::Threads> threads_;
  Counters counters_;
  std::shared_ptr<const compute::Stop> stop_;  // of the back end; null: it has none
  std::unique_ptr<compute::Backend> backend_;
  std::unique_ptr<comm::BodyCarrier> bodies_;
  std::unique_ptr<OrderedChannel> ordered_;
  std::vector<Shard> shards_;
  SnapshotPlace snapshot_;
  ChangedRows changed_rows_;
  StepScratch scratch_;
  std::unique_ptr<TrainingSettings> settings_;
  std::unique_ptr<Update> update_;
  std::unique_ptr<ReplicaAgreement> replicas_;
  UpdateFollower* follower_ = nullptr;  // null: there is none

  std::atomic<uint64_t> lookups_taken_{0};  // bit per number; given back by any thread
  uint64_t lookups_made_ = 0;
  bool filled_in_part_ = false;
  std::atomic<bool> in_backward_{false};
  uint64_t loads_ = 0;
  uint64_t rewrites_ = 0;
};

// A lookup's room in its collection.
class LookupPlace {
 public:
  explicit LookupPlace(Collection& collection)
      : collection_(collection), number_(collection.take_lookup()) {}
  ~LookupPlace() { collection_.give_back_lookup(number_); }
  LookupPlace(const LookupPlace&) = delete;
  LookupPlace& operator=(const LookupPlace&) = delete;

 private:
  Collection& collection_;
  int number_;
};

}  // namespace shardrec::embedding
