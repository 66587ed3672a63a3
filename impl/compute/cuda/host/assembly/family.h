// A device's operations on partial sums on their way to outputs.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "compute/assembly_operations.h"
#include "compute/cuda/host/assembly/assembly.h"
#include "compute/cuda/host/assembly/node_sums.h"
#include "compute/cuda/host/stream.h"

namespace shardrec::compute::cuda::host {

class AssemblyFamily final : public AssemblyOperations {
 public:
  explicit AssemblyFamily(std::shared_ptr<Stream> stream)
      : node_sums_(stream), assembly_(std::move(stream)) {}

  void count_node_sums(std::span<const NodeSum> sums, std::span<int64_t> rows) override {
    node_sums_.count(sums, rows);
  }
  void add_on_nodes(std::span<const NodeSum> sums) override { node_sums_.run(sums); }
  void count_chunk_sums(std::span<const NodeSumCount> counts, std::span<int64_t> rows) override {
    assembly_.count(counts, rows);
  }
  void assemble_bags(std::span<const PooledOutput> outputs) override { assembly_.run(outputs); }
  void assemble_sequences(std::span<const SequenceOutput> outputs) override {
    assembly_.run(outputs);
  }

 private:
  NodeSummation node_sums_;
  Assembly assembly_;
};

}  // namespace shardrec::compute::cuda::host
