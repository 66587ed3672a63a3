// The CPU's operations on rows of tables that are read.
#pragma once

#include <span>

#include "compute/cpu/lookup/bag_outputs.h"
#include "compute/cpu/lookup/bag_sums.h"
#include "compute/cpu/tasks/context.h"
#include "compute/lookup_operations.h"

namespace shardrec::compute::cpu {

class LookupFamily final : public LookupOperations {
 public:
  explicit LookupFamily(Context& context) : context_(context) {}

  void sum_bags(std::span<const BagSums> blocks) override { bag_sums_.run(blocks, context_); }
  void look_up_outputs(std::span<const BagOutputs> blocks, size_t output_bytes) override {
    bag_outputs_.run(blocks, output_bytes, context_);
  }

 private:
  Context& context_;
  BagSummation bag_sums_;
  OutputLookup bag_outputs_;
};

}  // namespace shardrec::compute::cpu
