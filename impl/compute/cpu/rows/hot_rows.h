// Rows that so many ids of a batch name that one thread should not sum their gradients alone: the
// sums of their blocks are taken by all threads, and then added in order.
// The bits are those of one thread, signs of zeros included: a block's sum is the same wherever it
// is taken, and the sums are added as they are.
//
// One thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "compute/cpu/tasks/context.h"
#include "compute/kernels.h"
#include "core/memory.h"

namespace shardrec::compute::cpu {

class HotRows {
 public:
  void clear();
  // Row u of a job, which stays valid until sum(). Returns its number here.
  int add(const RowUpdate& job, int64_t u);
  // Sums the blocks of all rows that were added.
  void sum(const Context& context);
  // The job with row u as its first row, whose occurrences are the sums of its blocks.
  RowUpdate job(int number, RowUpdate job) const;

 private:
  struct Row {
    RowUpdate job;  // a row per block
    int64_t u = 0;
    size_t first_run = 0;  // in runs_: where each block begins, and the end of the last one
    int64_t blocks = 0;
    size_t first_block = 0;  // among those of all rows
    size_t first_float = 0;  // of their sums
  };

  // Blocks [first, last) of a row.
  struct Task {
    size_t row = 0;
    int64_t first = 0;
    int64_t last = 0;
  };

  std::vector<Row> rows_;
  std::vector<Task> tasks_;
  std::vector<int64_t> runs_;
  std::vector<uint32_t> numbers_;        // 0, 1, ...: bags and blocks of the sums
  std::vector<const float*> gradients_;  // the sums
  std::vector<int64_t> one_row_;         // by row, from 2 * number: 0, blocks
  core::Scratch sums_;
};

}  // namespace shardrec::compute::cpu
