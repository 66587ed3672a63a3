// The CPU's operations on ids on their way to the owners of their rows.
#pragma once

#include <span>

#include "compute/cpu/routing/batch_checks.h"
#include "compute/cpu/routing/routing.h"
#include "compute/cpu/routing/routing_dictionary.h"
#include "compute/cpu/routing/routing_received.h"
#include "compute/cpu/tasks/context.h"
#include "compute/routing_operations.h"

namespace shardrec::compute::cpu {

class RoutingFamily final : public RoutingOperations {
 public:
  explicit RoutingFamily(Context& context) : context_(context) {}

  void read_lengths(std::span<const BagLengths> features,
                    std::span<CheckedLengths> checked) override {
    cpu::read_lengths(features, checked, context_);
  }
  void sort_samples(std::span<const SamplesByBag> features,
                    std::span<WrongInteger> wrong) override {
    cpu::sort_samples(features, wrong, context_);
  }
  void count_ids(std::span<const RoutedIds> features, std::span<CheckedIds> checked,
                 std::span<BlockCount> counts) override {
    routing_.count(features, checked, counts, context_);
  }
  void write_ids(std::span<const RoutedIds> features, const WrittenBlocks& blocks,
                 std::span<CheckedIds> checked) override {
    routing_.write(features, blocks, checked, context_);
  }
  void deduplicate_ids(std::span<const DeduplicatedBlocks> messages) override {
    cpu::deduplicate_ids(messages, context_);
  }
  void check_bags(std::span<const Bags> blocks, std::span<BagDefect> defects) override {
    cpu::check_bags(blocks, defects, context_);
  }
  void expand_ids(std::span<const CodedIds> blocks, std::span<WrongInteger> wrong) override {
    cpu::expand_ids(blocks, wrong, context_);
  }

 private:
  Context& context_;
  IdRouting routing_;
};

}  // namespace shardrec::compute::cpu
