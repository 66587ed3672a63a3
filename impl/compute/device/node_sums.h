// Sums of what the parts of a node have of each sample, on a device (compute::NodeSum).
//
// Thread rule: that of the stream.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "compute/device/present_words.h"
#include "compute/device/results.h"
#include "compute/device/row_sums.h"
#include "compute/output_operations.h"

namespace shardrec::compute::device {

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

}  // namespace shardrec::compute::device
