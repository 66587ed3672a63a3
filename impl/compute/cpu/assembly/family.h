// The CPU's operations on partial sums on their way to outputs.
#pragma once

#include <span>

#include "compute/assembly_operations.h"
#include "compute/cpu/assembly/assembly.h"
#include "compute/cpu/assembly/node_sums.h"
#include "compute/cpu/tasks/context.h"

namespace shardrec::compute::cpu {

class AssemblyFamily final : public AssemblyOperations {
 public:
  explicit AssemblyFamily(Context& context) : context_(context) {}

  void count_node_sums(std::span<const NodeSum> sums, std::span<int64_t> rows) override {
    cpu::NodeSummation::count(sums, rows, context_);
  }
  void add_on_nodes(std::span<const NodeSum> sums) override { node_sums_.run(sums, context_); }
  void count_chunk_sums(std::span<const NodeSumCount> counts, std::span<int64_t> rows) override {
    cpu::Assembly::count(counts, rows, context_);
  }
  void assemble_bags(std::span<const PooledOutput> outputs) override {
    assembly_.run(outputs, context_);
  }
  void assemble_sequences(std::span<const SequenceOutput> outputs) override {
    assembly_.run(outputs, context_);
  }

 private:
  Context& context_;
  NodeSummation node_sums_;
  Assembly assembly_;
};

}  // namespace shardrec::compute::cpu
