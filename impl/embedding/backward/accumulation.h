// Gradients of one own shard that wait for their optimizer step: the rows that were touched since
// the last one and, for each, the sum over the accumulated lookups, in the order in which they
// came.
//
// A row's sum is ((first + second) + third) ..., each the row's canonical gradient of one lookup:
// the same bits under every plan and number of threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compute/kernels.h"
#include "core/memory.h"
#include "core/threads.h"
#include "embedding/tables/step_context.h"

namespace shardrec::embedding {

class Accumulation {
 public:
  explicit Accumulation(int64_t width) : width_(width) {}

  bool empty() const { return rows_.empty(); }
  int64_t unique() const { return static_cast<int64_t>(rows_.size()); }
  std::span<const int64_t> rows() const { return rows_; }  // ascending

  // Adds a lookup's rows, ascending, with their gradients, [rows, width]. Throws UNSUPPORTED for
  // 2^32 rows; nothing has changed then.
  void add(std::span<const int64_t> rows, const float* gradients, const StepContext& context);
  void clear();

  // After the last add: makes what describe() needs.
  void finish();
  // Fills in the fields of a job that say which gradients go to which row.
  void describe(compute::RowUpdate& job) const;

 private:
  int64_t width_;
  std::vector<int64_t> rows_;
  std::vector<uint32_t> slots_;      // by place in rows_
  std::vector<float*> gradients_;    // by slot
  std::vector<core::Scratch> pool_;  // gradients of the rows that were new in the k-th add
  size_t adds_ = 0;
  // Of a merge: the new lists, and the slot of each incoming row.
  std::vector<int64_t> merged_rows_;
  std::vector<uint32_t> merged_slots_;
  std::vector<uint32_t> targets_;
  // Of a job.
  std::vector<int64_t> run_;
  std::vector<uint32_t> blocks_;
};

}  // namespace shardrec::embedding
