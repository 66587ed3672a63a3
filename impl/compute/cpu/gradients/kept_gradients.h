// KeptGradients on the CPU: an entry per row, so that a merge moves no gradients.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compute/cpu/tasks/context.h"
#include "compute/kept_gradients.h"
#include "core/memory.h"

namespace shardrec::compute::cpu {

class IndexedGradients final : public KeptGradients {
 public:
  // context outlives it.
  IndexedGradients(int64_t width, const Context& context) : width_(width), context_(context) {}

  std::span<const int64_t> rows() const override { return rows_; }
  void add(std::span<const int64_t> rows, const float* gradients) override;
  void clear() noexcept override;
  void finish() override;
  void describe(RowUpdate& job) const override;

 private:
  int64_t width_;
  const Context& context_;
  std::vector<int64_t> rows_;
  std::vector<uint32_t> entries_;  // by place in rows_
  std::vector<float*> gradients_;  // by entry
  std::vector<Buffer> pool_;       // gradients of the rows that were new in the k-th add
  size_t adds_ = 0;
  // Of a merge: the new lists, and the entry of each incoming row.
  std::vector<int64_t> merged_rows_;
  std::vector<uint32_t> merged_entries_;
  std::vector<uint32_t> targets_;
  // Of a job.
  std::vector<int64_t> run_;
  std::vector<uint32_t> blocks_;
};

}  // namespace shardrec::compute::cpu
