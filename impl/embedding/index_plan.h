// Step 4 of the exchange: the occurrences of a part's rows in one batch, grouped by row, in
// canonical order: (feature in model order, global sample, position in the bag). A stable radix
// sort builds it, whose result does not depend on the number of threads.
#pragma once

#include <cstdint>
#include <span>

#include "compute/kernels.h"
#include "core/memory.h"
#include "core/threads.h"
#include "embedding/inbox.h"
#include "embedding/layout.h"

namespace shardrec::embedding {

class IndexPlan {
 public:
  // part: one of the rank's own; first_block: its first block in Layout::blocks_of(own rank).
  IndexPlan(const Layout& layout, int32_t part, size_t first_block);

  // gradients: where the gradient rows of block b from source s start, at [s * blocks + b], blocks
  // the number of the rank's blocks. work is shared scratch, free again on return.
  void build(const Inbox& inbox, std::span<const float* const> gradients, core::Threads& threads,
             core::Scratch& work);
  // No occurrences.
  void clear();

  int64_t unique() const { return static_cast<int64_t>(rows_.size()); }
  int64_t occurrences() const { return occurrences_; }
  std::span<const int64_t> rows() const { return rows_; }  // [unique], ascending
  std::span<const int64_t> run() const { return run_; }    // [unique + 1]
  size_t memory() const {
    return sorted_memory_.capacity() + bag_memory_.capacity() + unique_memory_.capacity();
  }

  // Fills in the fields of a job that say which gradients go to which row.
  void describe(compute::RowUpdate& job) const;

 private:
  // Parallel arrays, one entry per occurrence.
  template <class Key>
  struct Columns {
    Key* keys = nullptr;
    uint32_t* bags = nullptr;
    float* weights = nullptr;  // null: all 1
  };

  template <class Key>
  void build_with(const Inbox& inbox, std::span<const float* const> gradients,
                  core::Threads& threads, core::Scratch& work);
  template <class Key>
  void collect(const Inbox& inbox, std::span<const float* const> gradients, core::Threads& threads,
               const Columns<Key>& out);
  template <class Key>
  void find_runs(const Key* keys, core::Threads& threads, std::span<int64_t> firsts);

  const Layout& layout_;
  const Part& part_;
  size_t first_block_;
  size_t features_;  // of the table
  int64_t occurrences_ = 0;
  int64_t bags_ = 0;
  core::Scratch sorted_memory_;  // bag and weight of each occurrence
  core::Scratch bag_memory_;     // gradient row and block of each bag
  core::Scratch unique_memory_;  // rows, run
  std::span<uint32_t> bag_of_;
  std::span<float> weight_of_;  // empty: all 1
  std::span<const float*> gradient_of_;
  std::span<uint32_t> block_of_;
  std::span<int64_t> rows_;
  std::span<int64_t> run_;
};

}  // namespace shardrec::embedding
