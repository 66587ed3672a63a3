// Metrics of binary predictions over all ranks (capi's metrics.h): every rank gets the same bits.
//
// For the AUC each rank takes a range of predictions: the ranks agree on limits drawn from all
// their samples, send each range to its rank, and add up the counts. Limits part different
// predictions only, so that ties stay together. Thread rule: one thread at a time. The channels are
// opened by the first compute.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/collective/collectives.h"
#include "comm/collective/pipelined_channel.h"
#include "comm/communicator.h"
#include "dense/auc.h"
#include "dense/device/caller_matrices.h"
#include "dense/device/samples.h"
#include "shardrec/metrics.h"

namespace shardrec::dense {

class Metrics {
 public:
  // communicator: null for metrics of this rank alone. place: where samples are kept until compute(). On a device,
  // throws as device::Context.
  explicit Metrics(std::shared_ptr<comm::Communicator> communicator,
                   const device::ContextOptions& place = {});

  // The devices that samples may be on.
  core::DeviceSet caller_devices() const noexcept;

  // Sizes are equal; each a matrix of one row. Throws INVALID_ARGUMENT with the position of a probability outside 0 ..
  // 1 or a label that is neither 0 nor 1, and OUT_OF_MEMORY; then nothing was added. On a device, does not wait, and
  // compute() throws for such samples; throws as device::DeviceSamples.
  void update(const device::CallerMatrix& probabilities, const device::CallerMatrix& labels);
  void update(std::span<const float> probabilities, std::span<const float> labels);

  // Collective when there is a communicator. On a device, throws INVALID_ARGUMENT on all ranks where one of them has a
  // wrong sample, until that one calls reset(); and OUT_OF_MEMORY, DEVICE_ERROR.
  void compute();

  // Throws INVALID_STATE before a compute, NOT_FOUND for a metric that the samples do not define,
  // INVALID_ARGUMENT for an unknown one.
  double get(shardrec_metric metric) const;

  // On a device throws DEVICE_ERROR.
  void reset();

 private:
  // Memory that peers may still read when this object is gone.
  struct Samples {
    std::vector<PackedSample> packed;
  };
  struct WrongSample {
    int rank;
    device::DeviceSamples::Wrong sample;
  };
  struct Results {
    PairCounts pairs;
    double loss_sum = 0;
    double seconds = 0;
    std::optional<WrongSample> wrong = {};  // then nothing was counted
  };
  // What every rank tells of its samples; up to kLimits predictions follow, evenly spaced in its
  // order.
  struct Summary {
    int64_t samples = 0;
    double loss_sum = 0;
    double seconds = 0;
    int64_t wrong_position = -1;  // of the first wrong sample; -1: there is none
    int64_t wrong_label = 0;      // 1: its label is wrong, 0: its probability
  };

  // The samples that a device has come to the host.
  void take_from_device();
  Summary summary() const;
  Results over_ranks(const Summary& own);
  std::span<const PackedSample> own_range(const std::vector<PackedSample>& limits);

  std::shared_ptr<comm::Communicator> communicator_;
  std::optional<comm::Collectives> collectives_;
  std::optional<comm::PipelinedChannel> samples_channel_;
  std::unique_ptr<device::DeviceSamples> on_device_;  // null: on the CPU
  std::shared_ptr<Samples> samples_;
  std::vector<PackedSample> spare_;
  std::vector<PackedSample> range_;
  double loss_sum_ = 0;
  std::chrono::steady_clock::time_point start_;
  std::optional<Results> results_;
};

}  // namespace shardrec::dense
