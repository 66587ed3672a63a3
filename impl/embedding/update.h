// The owner's half of backward: group occurrences by row, exchange shared row statistics, and apply
// one optimizer step to every touched row.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "compute/kernels.h"
#include "core/memory.h"
#include "core/threads.h"
#include "embedding/inbox.h"
#include "embedding/index_plan.h"
#include "embedding/layout.h"
#include "embedding/shard.h"
#include "embedding/statistics.h"

namespace shardrec::embedding {

// The decision of all ranks about a step.
struct GradientDecision {
  GradientVerdict verdict = GradientVerdict::kApply;
  int rank = -1;   // the lowest that declined
  Verdict defect;  // of an error
};

// Reads the headers: one error or skip means that nobody updates; an error counts more. Throws
// CORRUPT_DATA.
GradientDecision decide(std::span<const comm::ConstBytes> messages);

class Update {
 public:
  Update(const Layout& layout, std::span<Shard> shards);

  // Step one: builds the index plans. gradients stay where they arrived until apply() has returned.
  // Throws CORRUPT_DATA when a message is not what the batch needs; nothing has changed then.
  void group(const Inbox& inbox, std::span<const comm::ConstBytes> gradients,
             core::Threads& threads, core::Scratch& work);

  // Step two, where statistics_needed(): sums of squares for the other owners of columns.
  bool statistics_needed() const { return statistics_.needed(); }
  void pack_statistics(const compute::OptimizerStep& step, const compute::Kernels& kernels,
                       core::Threads& threads, core::Scratch& work, core::Scratch& buffer);
  std::span<const comm::ConstBytes> statistics_messages() const { return statistics_.messages(); }
  void add_statistics(std::span<const comm::ConstBytes> messages);

  // Step three: updates the tables. Cannot fail.
  void apply(const compute::OptimizerStep& step, const compute::Kernels& kernels,
             core::Threads& threads, core::Scratch& work);

  size_t memory() const;

 private:
  compute::RowUpdate job_for(size_t shard, const compute::OptimizerStep& step) const;
  int64_t lane_count(const core::Threads& threads) const;
  template <class Body>
  void for_each_piece(core::Threads& threads, core::Scratch& work, Body body);

  const Layout& layout_;
  std::span<Shard> shards_;
  std::vector<IndexPlan> plans_;  // by own shard
  SharedStatistics statistics_;
  std::vector<const float*> gradient_blocks_;  // [source * blocks + block]
  core::Scratch sums_memory_;
  std::vector<float*> own_sums_;  // by own shard; null where not shared
  std::vector<float*> totals_;
  // Rows [first, last) of one shard's unique rows: a share of the occurrences.
  struct Piece {
    size_t shard = 0;
    int64_t first = 0;
    int64_t last = 0;
  };
  std::vector<Piece> pieces_;
  size_t lane_bytes_ = 0;  // scratch of a kernel call; group() makes room for all that may run
};

}  // namespace shardrec::embedding
