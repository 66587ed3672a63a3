// Sums of what the parts of a node have of each sample, on a device (compute::NodeSum).
//
// Thread rule: that of the stream.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "compute/assembly_operations.h"
#include "compute/cuda/host/assembly/row_sums.h"
#include "compute/cuda/host/present_words.h"
#include "compute/cuda/host/results.h"

namespace shardrec::compute::cuda::host {

class NodeSummation {
 public:
  explicit NodeSummation(std::shared_ptr<Stream> stream);

  // Returns when rows are there.
  void count(std::span<const NodeSum> sums, std::span<int64_t> rows);
  // Enqueued when the call returns; the list is copied.
  void run(std::span<const NodeSum> sums);

 private:
  std::shared_ptr<Stream> stream_;
  PresentWords words_;
  RowSumLaunches sums_;
  Results counted_;
};

}  // namespace shardrec::compute::cuda::host
