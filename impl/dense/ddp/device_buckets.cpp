#include "dense/ddp/device_buckets.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "comm/ipc/carrier.h"
#include "comm/nccl/carrier.h"
#include "compute/cuda/backend.h"
#include "compute/cuda/host/launch_list.h"
#include "core/error.h"
#include "core/trace_source.h"
#include "dense/device/elements.h"
#include "dense/device/kernels.h"

namespace shardrec::dense {
namespace {

namespace host = compute::cuda::host;

uint64_t* words(compute::Buffer& buffer) {
  return static_cast<uint64_t*>(static_cast<void*>(buffer.data()));
}

// Zeros of one type are those of the other.
float* floats(compute::Buffer& buffer) {
  return static_cast<float*>(static_cast<void*>(buffer.data()));
}

shardrec_cuda_rank_sum settings_of(const BucketSum& sum) {
  int exponent = 0;
  const bool by_reciprocal = std::frexp(sum.scale.divisor, &exponent) == 0.5;
  return {.from = device::element_of(sum.from),
          .to = device::element_of(sum.to),
          .through = sum.through ? device::element_of(*sum.through) : SHARDREC_CUDA_NO_ELEMENT,
          .divides = by_reciprocal ? 0 : 1,
          .scale = by_reciprocal ? 1 / sum.scale.divisor : sum.scale.divisor,
          .factor = sum.scale.factor,
          .bound = -1};
}

}  // namespace

class DeviceBuckets::Adder final : public BucketAdder {
 public:
  Adder(DeviceBuckets& buckets, size_t bucket)
      : buckets_(buckets), bucket_(bucket), runs_(buckets.stream_) {}

  void add_up(const BucketSum& sum) override {
    shardrec_cuda_rank_sum job = settings_of(sum);
    if (sum.for_way) job.saturated = words(buckets_.counts_) + bucket_;
    runs_.begin(sum.addends);
    for (size_t run = 0; run < sum.runs.size(); ++run) {
      runs_.add(sum.inputs.subspan(run * sum.addends, sum.addends), sum.runs[run].out,
                sum.runs[run].count);
    }
    const host::StreamTrace::Span span(buckets_.trace_, "gradient sums");
    runs_.launch(job);
  }

 private:
  DeviceBuckets& buckets_;
  size_t bucket_;
  device::ElementRuns runs_;
};

DeviceBuckets::DeviceBuckets(const std::shared_ptr<comm::Communicator>& communicator,
                             const SetPlace& place, const std::vector<std::shared_ptr<Mlp>>& stacks)
    : stop_(communicator->device_bodies() == comm::DeviceBodies::kNccl && communicator->size() > 1
                ? std::make_shared<comm::nccl::StopWord>(communicator)
                : nullptr),
      stream_(std::make_shared<host::Stream>(place.device, nullptr, place.wait, stop_)),
      trace_(stream_),
      backend_(compute::cuda::make_cuda_backend(
          stream_, {.threads = threads_,
                    .device = place.device,
                    .peers_in_process = communicator->reads_in_place() && stop_ == nullptr,
                    .alone = communicator->size() == 1,
                    .wait = place.wait,
                    .stop = stop_})),
      lanes_(stop_ == nullptr ? nullptr
                              : std::make_shared<comm::nccl::Lanes>(
                                    communicator, place.device, stop_, comm::nccl::LaneSet::kOne)),
      bodies_(lanes_ == nullptr ? comm::ipc::make_carrier(*backend_, communicator, nullptr)
                                : comm::nccl::make_carrier(*backend_, lanes_)),
      sources_(*stream_, place.caller_stream, stacks),
      counts_(backend_->memory()) {
  trace_.set_track(core::device_track(communicator->rank(), core::DeviceRow::kGradients, 0));
  constexpr int kMost = SHARDREC_CUDA_MOST_ADDENDS;
  if (communicator->size() <= kMost) return;
  core::fail(SHARDREC_UNSUPPORTED,
             core::sentence("a set on a device has ", communicator->size(), " ranks; up to ", kMost,
                            " are accepted"),
             {.value = communicator->size(), .limit = kMost});
}

DeviceBuckets::~DeviceBuckets() {
  try {
    stream_->wait();
  } catch (...) {  // the device is lost, and what it had to do
    return;
  }
}

void DeviceBuckets::set_buckets(size_t buckets) {
  sources_.set_buckets(buckets);
  counts_.resize(buckets * sizeof(uint64_t));
  device::fill(*stream_, floats(counts_), 0, static_cast<int64_t>(2 * buckets));
}

std::unique_ptr<BucketAdder> DeviceBuckets::make_adder(size_t bucket, shardrec_dtype /*wire*/) {
  return std::make_unique<Adder>(*this, bucket);
}

std::unique_ptr<comm::nccl::AllReduce> DeviceBuckets::make_all_reduce(shardrec_dtype wire,
                                                                      int64_t elements) {
  if (lanes_ == nullptr) return nullptr;
  return std::make_unique<comm::nccl::AllReduce>(lanes_, comm::Purpose::kDense, *backend_, wire,
                                                 elements);
}

int64_t DeviceBuckets::saturated(size_t bucket) {
  std::byte* const read = read_.resize(sizeof(uint64_t));
  stream_->copy(read, counts_.data() + bucket * sizeof(uint64_t), sizeof(uint64_t));
  stream_->wait();
  uint64_t count = 0;
  std::memcpy(&count, read, sizeof count);
  return static_cast<int64_t>(count);
}

}  // namespace shardrec::dense
