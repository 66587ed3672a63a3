// The CPU's operations on the touched rows of a step.
#pragma once

#include <memory>
#include <span>

#include "compute/cpu/rows/row_groups.h"
#include "compute/cpu/rows/row_updates.h"
#include "compute/cpu/tasks/context.h"
#include "compute/row_operations.h"

namespace shardrec::compute::cpu {

class RowFamily final : public RowOperations {
 public:
  explicit RowFamily(Context& context) : context_(context) {}

  std::unique_ptr<RowGroups> make_row_groups() override {
    return std::make_unique<cpu::BucketedRows>(context_);
  }
  void open_rows(std::span<const TouchedRows> shards) override { rows_.open(shards, context_); }
  void sum_gradients(std::span<float* const> out) override { rows_.gradients(out, context_); }
  void sum_rows(std::span<const RowSums> shards) override { rows_.sums(shards, context_); }
  void update_rows(std::span<const RowStep> shards) override { rows_.update(shards, context_); }
  void sum_norms(std::span<const RowSums> shards) override { rows_.norms(shards, context_); }
  void rescale_rows(std::span<const float* const> norms) override {
    rows_.rescale(norms, context_);
  }

 private:
  Context& context_;
  RowUpdates rows_;
};

}  // namespace shardrec::compute::cpu
