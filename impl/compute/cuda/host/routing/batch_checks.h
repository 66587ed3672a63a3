// RoutingOperations::read_lengths and sort_samples on a device. Both wait for what the device found; lengths can
// also be read in two halves, so that something else is enqueued before the wait.
//
// Thread rule: that of the stream.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compute/cuda/host/arguments.h"
#include "compute/cuda/host/results.h"
#include "compute/cuda/host/routing/wrong_values.h"
#include "compute/cuda/host/tiles.h"
#include "compute/routing_operations.h"

namespace shardrec::compute::cuda::host {

class BatchChecks {
 public:
  explicit BatchChecks(std::shared_ptr<Stream> stream);

  void read_lengths(std::span<const BagLengths> features, std::span<CheckedLengths> checked);
  // The first half enqueues, and returns what the device will have found, by feature, in its memory; valid
  // until the next reading. The second waits.
  const shardrec_cuda_checked_list* enqueue_lengths(std::span<const BagLengths> features);
  void finish_lengths(std::span<const BagLengths> features, std::span<CheckedLengths> checked);
  void sort_samples(std::span<const SamplesByBag> features, std::span<WrongInteger> wrong);

 private:
  void list(std::span<const SamplesByBag> features);

  std::shared_ptr<Stream> stream_;
  Arguments arguments_;
  Results results_;
  WrongValues wrong_values_;
  Buffer work_;  // keys and numbers of samples, unsorted and sorted
  Buffer room_;
  std::vector<shardrec_cuda_bag_lengths> lengths_;
  std::vector<shardrec_cuda_samples_by_bag> sorted_;
  Tiles tiles_;
  Tiles list_tiles_;
  shardrec_cuda_sample_sorting job_ = {};
};

}  // namespace shardrec::compute::cuda::host
