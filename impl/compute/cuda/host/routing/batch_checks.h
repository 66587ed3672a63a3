// RoutingOperations::read_lengths and sort_samples on a device. Both wait for what the device found; another operation
// may read the lengths as well, and samples whose bags the host has checked are sorted without a wait.
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
  // The lengths as operations read them, on the device; valid until the next call.
  shardrec_cuda_length_reading send_lengths(std::span<const BagLengths> features);
  // What such an operation has found, by feature. wrong: the values of what was wrong, by feature; none: they are
  // fetched from the caller's lists.
  void take_lengths(std::span<const BagLengths> features,
                    std::span<const shardrec_cuda_checked_list> found,
                    std::span<CheckedLengths> checked,
                    std::span<const shardrec_cuda_wrong_values> wrong = {});
  void sort_samples(std::span<const SamplesByBag> features, std::span<WrongInteger> wrong);
  // Enqueued when the call returns.
  void sort_checked_samples(std::span<const SamplesByBag> features);

 private:
  shardrec_cuda_wrong_values values_at(const BagLengths& feature, int64_t item);
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
