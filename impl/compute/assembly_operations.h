// The family of operations on the way of partial sums from their owners to outputs: on the rank that adds up
// the sums of its node, and on the source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "compute/bags.h"
#include "compute/element.h"

namespace shardrec::compute {

// Some columns of partial sums of one part: a row per sample whose bit is set, in their order.
struct PresentRows {
  const uint64_t* present = nullptr;  // a bit per sample
  const float* rows = nullptr;
  int64_t stride = 0;  // between rows
};

// Sums of what the parts of a node have of each sample of a source, in the order of the addends:
// out = [samples of which any addend has a row, cols].
struct NodeSum {
  std::span<const PresentRows> addends;
  int64_t samples = 0;
  int64_t cols = 0;
  float* out = nullptr;
};

// Some columns of what one part has of the bags of its block: a row per bag that is not empty; of a
// sequence, a row per id, or per different id where ids travelled once.
struct SentRows {
  const SentBags* bags = nullptr;
  const float* rows = nullptr;
  int64_t stride = 0;  // between rows
};

// What the parts of a node have of some columns of a feature.
struct NodeRows {
  std::span<const SentRows> addends;  // ascending rows of the table
  // Where the node has added them up: a row per bag of which any addend has ids. The rows of the
  // addends are not read then.
  const float* sums = nullptr;           // [rows, cols]
  const uint32_t* chunk_sums = nullptr;  // [chunks + 1]: rows before each chunk; null: not added up
};

// chunk_sums: as NodeRows has them, made from which bags the blocks of the addends hold.
struct NodeSumCount {
  std::span<const SentRows> addends;
  int64_t bags = 0;
  uint32_t* chunk_sums = nullptr;
};

// Some columns of the output of a pooled feature: the sum over its nodes, in their order, of the sum
// of the node's addends, in theirs. Sums are fp32, and rounded once, to nearest, where the output is
// of another type. The output of an empty bag is 0.
struct PooledOutput {
  std::span<const NodeRows> nodes;
  int64_t bags = 0;
  const uint32_t* lengths = nullptr;  // [bags]
  bool mean = false;                  // sums are divided by the lengths
  BagSamples samples = {};            // where each bag is written
  int64_t cols = 0;
  void* out = nullptr;  // a row per sample
  Element out_element = Element::kFloat32;
  size_t out_stride = 0;  // elements
};

// Some columns of the output of a sequence: a row per id, 0 for those that were dropped.
struct SequenceOutput {
  std::span<const SentRows> addends;
  int64_t ids = 0;
  const int32_t* intervals = nullptr;  // [ids]: interval of each, or kDroppedId; null: all 0
  std::span<const int32_t> addend_of;  // by interval
  int64_t cols = 0;
  void* out = nullptr;  // a row per id
  Element out_element = Element::kFloat32;
  size_t out_stride = 0;  // elements
};

// When an operation is over, and the thread rule: backend.h.
class AssemblyOperations {
 public:
  virtual ~AssemblyOperations() = default;
  AssemblyOperations(const AssemblyOperations&) = delete;
  AssemblyOperations& operator=(const AssemblyOperations&) = delete;

  // rows[i] = the rows that sums[i] will have, there when the call returns; where they are written to
  // is not read.
  virtual void count_node_sums(std::span<const NodeSum> sums, std::span<int64_t> rows) = 0;
  virtual void add_on_nodes(std::span<const NodeSum> sums) = 0;
  // rows[i] = all rows of counts[i], there when the call returns.
  virtual void count_chunk_sums(std::span<const NodeSumCount> counts, std::span<int64_t> rows) = 0;
  virtual void assemble_bags(std::span<const PooledOutput> outputs) = 0;
  virtual void assemble_sequences(std::span<const SequenceOutput> outputs) = 0;

 protected:
  AssemblyOperations() = default;
};

}  // namespace shardrec::compute
