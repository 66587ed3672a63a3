// Outputs of pooled features and of sequences, assembled on a device from what their owners sent
// (compute::PooledOutput, compute::SequenceOutput); and the sums of nodes among it, counted
// (compute::NodeSumCount).
//
// Thread rule: that of the stream.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compute/assembly_operations.h"
#include "compute/cuda/host/arguments.h"
#include "compute/cuda/host/assembly/held_bags.h"
#include "compute/cuda/host/assembly/row_sums.h"
#include "compute/cuda/host/results.h"

namespace shardrec::compute::cuda::host {

class Assembly {
 public:
  explicit Assembly(std::shared_ptr<Stream> stream);

  // Returns when rows are there.
  void count(std::span<const NodeSumCount> counts, std::span<int64_t> rows);
  // Enqueued when the calls return; the lists are copied.
  void run(std::span<const PooledOutput> outputs);
  void run(std::span<const SequenceOutput> outputs);

 private:
  void add_sums(const PooledOutput& output, size_t& list);
  void add(const SequenceOutput& output);

  std::shared_ptr<Stream> stream_;
  HeldBags held_;
  RowSumLaunches sums_;
  Results counted_;
  // Of sequences.
  struct Sequence {
    shardrec_cuda_sequence job;
    size_t first_addend = 0;
    size_t first_interval = 0;
    bool vectors = false;
  };
  void send_sequences();

  Arguments arguments_;
  Buffer next_rows_;
  Buffer source_;
  std::vector<Sequence> sequences_;
  std::vector<shardrec_cuda_sequence_rows> addends_;
  std::vector<int32_t> addend_of_;
  LaunchList<shardrec_cuda_sequence> chunks_;
  LaunchList<shardrec_cuda_sequence> copies_[2];  // of single numbers, of vectors
};

}  // namespace shardrec::compute::cuda::host
