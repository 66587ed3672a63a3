// Step 4 of the exchange: the occurrences of a part's rows in one batch, grouped by row, in canonical
// order: (feature in model order, global sample, position in the bag). Built by a stable radix sort
// whose result does not depend on the number of threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compute/kernels.h"
#include "core/memory.h"
#include "core/threads.h"
#include "embedding/inbox.h"
#include "embedding/layout.h"

namespace shardrec::embedding {

class IndexPlan {
 public:
  // part: one of the rank's own; first_block: its first block in Layout::blocks_of(rank).
  IndexPlan(const Layout& layout, int32_t part, size_t first_block);

  // gradients: per source, the message's first block of this rank (behind the header), where block b
  // of the rank starts block_offsets[b] bytes on. work is shared scratch, free again on return.
  void build(const Inbox& inbox, std::span<const comm::ConstBytes> gradients, core::Threads& threads,
             core::Scratch& work);

  int64_t unique() const { return unique_; }
  int64_t occurrences() const { return occurrences_; }
  std::span<const int64_t> rows() const { return rows_; }  // [unique], ascending
  std::span<const int64_t> run() const { return run_; }    // [unique + 1]
  size_t memory() const;

  // Fills the parts of the job that say which gradient goes to which row.
  void describe(compute::RowUpdate& job) const;

 private:
  template <class Key>
  void sort(const Inbox& inbox, core::Threads& threads, core::Scratch& work);
  void collect_bags(const Inbox& inbox, std::span<const comm::ConstBytes> gradients);

  const Layout& layout_;
  int32_t part_;
  size_t first_block_;
  size_t features_;
  int64_t occurrences_ = 0;
  int64_t unique_ = 0;
  int64_t bags_ = 0;
  bool weighted_ = false;
  core::Scratch sorted_memory_;   // sorted bags, weights
  core::Scratch bag_memory_;      // gradient rows and blocks of bags
  core::Scratch unique_memory_;   // rows, run
  std::span<uint32_t> bag_of_;    // [occurrences]
  std::span<float> weight_of_;    // [occurrences] or empty
  std::span<const float*> gradient_of_;  // [bags]
  std::span<uint32_t> block_of_;         // [bags]
  std::span<int64_t> rows_;
  std::span<int64_t> run_;
};

}  // namespace shardrec::embedding
