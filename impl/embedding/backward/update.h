// The owner's half of backward: group occurrences by row, sum over the columns of other owners, and
// apply one optimizer step to every touched row; or keep the gradients for a later step.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "compute/backend.h"
#include "compute/buffer.h"
#include "embedding/backward/index_plan.h"
#include "embedding/backward/received_gradients.h"
#include "embedding/backward/replicated.h"
#include "embedding/backward/statistics.h"
#include "embedding/exchange/inbox.h"
#include "embedding/tables/layout.h"
#include "embedding/tables/settings.h"
#include "embedding/tables/shard.h"

namespace shardrec::embedding {

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
  Update(const Layout& layout, std::span<Shard> shards, comm::BodyCarrier& bodies);

  // Builds the index plan that a step of these tables' settings needs: frozen tables have no rows.
  // steps: by table. Needs no gradients.
  void group(const Inbox& inbox, std::span<const TableStep> steps, IndexPlan& plan);
  // Where the bodies of the gradient messages begin. Throws CORRUPT_DATA.
  std::span<const size_t> gradient_heads(std::span<const comm::ConstBytes> messages) {
    return gradients_.heads(messages);
  }
  // Step one, after group(): finds the gradients of the plan's rows, in messages and bodies as
  // ReceivedGradients::open takes them. owner_scale: of gradients that
  // are divided late. The plan, the steps and the gradients stay where they are until apply() has
  // returned. Throws CORRUPT_DATA when a message is not what the batch needs; nothing has changed
  // then.
  void open(const Inbox& inbox, std::span<const comm::ConstBytes> messages,
            std::span<const comm::ConstBytes> bodies, float owner_scale,
            std::span<const TableStep> steps, const IndexPlan& plan, compute::Backend& backend);

  // In place of all further steps: keeps the gradients for a later one. Throws UNSUPPORTED for 2^32
  // rows of a box; nothing has changed then.
  void accumulate(compute::Backend& backend);
  // Step two, where gradients are kept: adds them to the present ones.
  bool accumulated() const { return kept_lookups_ > 0; }
  void add_accumulated(compute::Backend& backend);
  // Forgets what is kept: after the step, or in place of it.
  void drop_accumulated();

  // Where replicas_needed(): two exchanges that bring the sums over all ranks of the rows of tables
  // replicated by rows.
  bool replicas_needed() const { return replicated_.needed(); }
  void pack_replicas(compute::Backend& backend, comm::MessageBuffer& buffer);
  void add_replicas(std::span<const comm::ConstBytes> messages, comm::MessageBuffer& buffer);
  void take_replicas(std::span<const comm::ConstBytes> messages, compute::Backend& backend);
  std::span<const comm::ConstBytes> replicas_messages() const { return replicated_.messages(); }

  // Step three, where statistics_needed(): sums for the other owners of columns.
  bool statistics_needed() const { return statistics_.needed(); }
  void pack_statistics(compute::Backend& backend, comm::MessageBuffer& buffer);
  std::span<const comm::ConstBytes> statistics_messages() const { return statistics_.messages(); }
  void add_statistics(std::span<const comm::ConstBytes> messages) { statistics_.add_up(messages); }

  // Step four: updates the tables, and rescales rows above max_norm where rows are whole. Throws
  // before the first row has changed, or not at all.
  void apply(compute::Backend& backend);

  // Step five, where norms_needed(): norms for the other owners of columns, then their rows.
  bool norms_needed() const { return norms_.needed(); }
  void pack_norms(compute::Backend& backend, comm::MessageBuffer& buffer);
  std::span<const comm::ConstBytes> norms_messages() const { return norms_.messages(); }
  void rescale(std::span<const comm::ConstBytes> messages, compute::Backend& backend);

  // Rows of one of the own shards that the step updates.
  int64_t touched_rows(size_t shard) const { return static_cast<int64_t>(rows_of(shard).size()); }

 private:
  std::span<const int64_t> rows_of(size_t shard) const;
  compute::TouchedRows touched(size_t shard) const;
  // Hands the back end the rows and gradients that the step is about.
  void open_rows(compute::Backend& backend);
  // Sums the gradients of the shards' rows where they are wanted: buffers_.
  template <class Wanted>
  void sum_gradients(compute::Backend& backend, Wanted wanted);

  const Layout& layout_;
  std::span<Shard> shards_;
  const IndexPlan* plan_ = nullptr;  // of the step; its parts are the own shards
  std::vector<uint8_t> wanted_;      // by own shard: not frozen
  std::vector<std::unique_ptr<compute::KeptGradients>> kept_;  // by own shard
  int64_t kept_lookups_ = 0;                                   // the same on all ranks
  bool from_kept_ = false;  // the step's gradients are those that were kept
  ReplicatedGradients replicated_;
  std::vector<int> replicated_of_;  // by own shard: its place among replicated_.tables(), -1: none
  std::vector<RowGradients> own_replicas_;  // by place
  bool from_replicas_ = false;              // theirs are the sums over all ranks
  std::span<const TableStep> steps_;        // by table
  float owner_scale_ = 1;
  SharedStatistics statistics_;
  SharedStatistics norms_;
  std::vector<std::span<const int64_t>> rows_;  // by own shard, while sums are exchanged
  ReceivedGradients gradients_;
  compute::Buffer buffer_memory_;  // gradients on their way to kept_ or to other ranks
  std::vector<float*> buffers_;    // by own shard; null: not wanted
  // What the back end is asked, by own shard.
  std::vector<compute::TouchedRows> touched_;
  std::vector<compute::RowSums> sums_;
  std::vector<compute::RowStep> row_steps_;
  std::vector<const float*> totals_;
};

}  // namespace shardrec::embedding
