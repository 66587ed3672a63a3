// The CPU's operations on gradients on their way to the owners of rows.
#pragma once

#include <memory>
#include <span>

#include "compute/cpu/gradients/gradient_packing.h"
#include "compute/cpu/gradients/gradient_rows.h"
#include "compute/cpu/gradients/kept_gradients.h"
#include "compute/cpu/gradients/weight_products.h"
#include "compute/cpu/tasks/context.h"
#include "compute/gradient_operations.h"

namespace shardrec::compute::cpu {

class GradientFamily final : public GradientOperations {
 public:
  explicit GradientFamily(Context& context) : context_(context) {}

  void pack_bag_gradients(std::span<const BagGradients> blocks) override {
    packing_.run(blocks, context_);
  }
  void pack_sequence_gradients(std::span<const SequenceGradients> blocks) override {
    packing_.run(blocks, context_);
  }
  void take_weight_products(std::span<const WeightProducts> blocks) override {
    weight_products_.run(blocks, context_);
  }
  void sum_weight_products(std::span<const WeightGradients> features) override {
    cpu::sum_weight_products(features, context_);
  }
  void number_occurrences(const SingleOccurrences& rows) override { cpu::number_occurrences(rows); }
  std::unique_ptr<KeptGradients> make_kept_gradients(int64_t width) override {
    return std::make_unique<cpu::IndexedGradients>(width, context_);
  }

 private:
  Context& context_;
  GradientPacking packing_;
  WeightProductTasks weight_products_;
};

}  // namespace shardrec::compute::cpu
