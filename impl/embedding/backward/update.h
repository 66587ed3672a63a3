// The owner's half of backward: group occurrences by row, sum over the columns of other owners, and
// apply one optimizer step to every touched row; or keep the gradients for a later step.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "compute/backend.h"
#include "compute/buffer.h"
#include "embedding/backward/divisors.h"
#include "embedding/backward/index_plan.h"
#include "embedding/backward/received_gradients.h"
#include "embedding/backward/replica_weights.h"
#include "embedding/backward/replicated.h"
#include "embedding/backward/statistics.h"
#include "embedding/exchange/exchange.h"
#include "embedding/exchange/inbox.h"
#include "embedding/exchange/step_context.h"
#include "embedding/tables/layout.h"
#include "embedding/tables/settings.h"
#include "embedding/tables/shard.h"

namespace shardrec::embedding {

// What a backward does with its gradients.
enum class GradientUse : uint8_t { kStep, kKeep };

// The decision of all ranks about a step.
struct GradientDecision {
  GradientVerdict verdict = GradientVerdict::kApply;
  int rank = -1;   // that declined, or differs from the others
  Verdict defect;  // of an error
};

// Reads the headers. One error or skip means that nobody updates, and an error counts more; where
// there is neither, ranks that do not agree on accumulating, or on settings, are an error. Throws
// CORRUPT_DATA, also where other ranks lend something and are not read in place.
GradientDecision decide(std::span<const comm::ConstBytes> messages, int own_rank,
                        bool reads_in_place);

class Update {
 public:
  explicit Update(const StepContext& context);

  // Builds the index plan that a step of these tables' settings needs, unless it was built so ahead: frozen tables
  // have no rows. steps: by table. Needs no gradients.
  void group(const Inbox& inbox, std::span<const TableStep> steps, IndexPlan& plan);
  // Where the bodies of the gradient messages begin.
  std::span<const size_t> gradient_heads() const { return gradients_.heads(); }
  // After group() and IndexPlan::join(): finds the gradients of the plan's rows, in messages, bodies
  // and what is lent as ReceivedGradients::open takes them. divisors: of the batch, the same
  // on all ranks where owners divide. use: gradients that are kept note no row as changed. The plan, the steps and
  // the gradients stay where they are until the step is taken. Throws CORRUPT_DATA when a message is not what the
  // batch needs; nothing has changed then.
  void open(const Inbox& inbox, std::span<const comm::ConstBytes> messages,
            std::span<const comm::ConstBytes> bodies,
            std::span<const std::span<const GradientRows>> lent, const Divisors& divisors,
            std::span<const TableStep> steps, const IndexPlan& plan, GradientUse use);

  // After open(), what its `use` says. Takes the step: gradients that were kept and those of replicas are
  // added to the present ones, sums over columns of other owners are exchanged where the optimizer
  // needs them, rows are updated. Throws before the first row has changed, or ends the communicator.
  void take_step(uint64_t lookup, PhaseTimer& timer);
  // Keeps the gradients for a later step. Throws UNSUPPORTED for 2^32 rows of a box; nothing has
  // changed then.
  void accumulate();

  // Forgets what is kept: in place of a step.
  void drop_accumulated();

  // Adds the rows of the last step to the counters, where the host did not know then how many they were; it
  // may wait for the device. Any thread.
  void count_rows();
  // The plan is about to be gone.
  void forget(const IndexPlan& plan) noexcept;

 private:
  // Steps in their order. Each needs some tables only: add_kept() where gradients are kept, sum_replicas()
  // for tables replicated by rows, sum_statistics() and rescale() for tables cut by columns, exchange_weights() where groups
  // share optimizer states.
  void add_kept();
  void sum_replicas(uint64_t lookup, PhaseTimer& timer);
  void sum_statistics(uint64_t lookup, PhaseTimer& timer);
  // Throws before the first row has changed, or not at all.
  void update_rows();
  void rescale(uint64_t lookup, PhaseTimer& timer);
  void exchange_weights(uint64_t lookup, PhaseTimer& timer);
  void count_updated();
  void count_uncounted();  // counting_ is held
  void count_rows_of(size_t shard, size_t rows);

  std::span<const int64_t> rows_of(size_t shard) const;
  compute::TouchedRows touched(size_t shard) const;
  void list_touched();
  // Hands the back end the rows and gradients that the step is about, where these have been located.
  void open_rows();
  // Sums the gradients of the shards' rows where they are wanted: buffers_.
  template <class Wanted>
  void sum_gradients(Wanted wanted);

  StepContext context_;
  std::span<Shard> shards_;
  const IndexPlan* plan_ = nullptr;  // of the step; its parts are the own shards
  std::vector<uint8_t> wanted_;      // by own shard: not frozen
  std::vector<std::unique_ptr<compute::KeptGradients>> kept_;  // by own shard
  int64_t kept_lookups_ = 0;                                   // the same on all ranks
  GradientUse use_ = GradientUse::kStep;
  bool from_kept_ = false;  // the step's gradients are those that were kept
  ReplicatedGradients replicated_;
  std::vector<int> replicated_of_;  // by own shard: its place among replicated_.tables(), -1: none
  std::vector<RowGradients> own_replicas_;  // by place
  bool from_replicas_ = false;              // theirs are the sums over all ranks
  std::span<const TableStep> steps_;        // by table
  Divisors divisors_;
  Exchange replica_rows_;
  Exchange replica_sums_;
  SharedStatistics statistics_;
  Exchange statistics_exchange_;
  SharedStatistics norms_;
  Exchange norms_exchange_;
  ReplicaWeights weights_;
  Exchange weights_exchange_;
  std::vector<std::span<const int64_t>> rows_;  // by own shard, while sums or weights are exchanged
  ReceivedGradients gradients_;
  compute::Buffer buffer_memory_;  // gradients on their way to kept_ or to other ranks
  std::vector<float*> buffers_;    // by own shard; null: not wanted
  // What the back end is asked, by own shard.
  std::vector<compute::TouchedRows> touched_;
  std::vector<compute::RowSums> sums_;
  std::vector<compute::RowStep> row_steps_;
  std::vector<const float*> totals_;
  std::mutex counting_;                   // guards:
  const IndexPlan* uncounted_ = nullptr;  // of the last step; its rows are not in the counters yet
};

}  // namespace shardrec::embedding
