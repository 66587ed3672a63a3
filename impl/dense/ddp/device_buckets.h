// Buckets on a device: operations are enqueued in a stream of the set, and messages go as those of lookups do
// (comm/bodies/carrier.h): between ranks of a process on the device, by NCCL where the communicator has it, by CUDA IPC
// between processes of one machine, else through the host's memory.
#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/nccl/lanes.h"
#include "comm/nccl/stop_word.h"
#include "compute/backend.h"
#include "compute/cuda/host/clock/stream_trace.h"
#include "compute/cuda/host/results.h"
#include "core/threads.h"
#include "dense/ddp/bucket_memory.h"
#include "dense/ddp/device_sources.h"

namespace shardrec::dense {

struct SetPlace {
  int32_t device = -1;        // -1: the CPU
  int64_t caller_stream = 0;  // the value of a cudaStream_t; 0: the legacy default stream
  compute::HostWait wait = compute::HostWait::kSleep;
};

class DeviceBuckets final : public BucketMemory {
 public:
  // stacks: as DeviceSources. Throws UNSUPPORTED (plug-ins), INVALID_ARGUMENT (no such device), OUT_OF_MEMORY,
  // DEVICE_ERROR.
  DeviceBuckets(const std::shared_ptr<comm::Communicator>& communicator, const SetPlace& place,
                const std::vector<std::shared_ptr<Mlp>>& stacks);
  // Returns when the operations are over.
  ~DeviceBuckets() override;
  DeviceBuckets(const DeviceBuckets&) = delete;
  DeviceBuckets& operator=(const DeviceBuckets&) = delete;

  comm::BodyCarrier& bodies() override { return *bodies_; }
  void set_buckets(size_t buckets) override;
  std::unique_ptr<BucketAdder> make_adder(size_t bucket, shardrec_dtype wire) override;
  std::unique_ptr<comm::nccl::AllReduce> make_all_reduce(shardrec_dtype wire,
                                                         int64_t elements) override;
  int64_t saturated(size_t bucket) override;
  size_t source_of(int64_t parameter) const noexcept override { return sources_.of(parameter); }
  void mark_ready(size_t bucket, size_t source, compute::cuda::host::Stream* given) override {
    sources_.mark(bucket, source, given);
  }
  void follow_marks(size_t bucket) override { sources_.follow(bucket); }
  void follow_sources() override { sources_.follow_all(); }
  bool has_one_order() const noexcept override { return true; }
  void submit() override { backend_->submit(); }
  void wait() override { backend_->wait(); }

  DeviceSources& sources() noexcept { return sources_; }
  const std::shared_ptr<compute::cuda::host::Stream>& stream() noexcept { return stream_; }
  const std::shared_ptr<compute::Memory>& memory() { return backend_->memory(); }

 private:
  class Adder;

  core::Threads threads_{1};
  std::shared_ptr<comm::nccl::StopWord> stop_;  // null: messages do not go by NCCL
  std::shared_ptr<compute::cuda::host::Stream> stream_;
  compute::cuda::host::StreamTrace trace_;
  std::unique_ptr<compute::Backend> backend_;
  std::shared_ptr<comm::nccl::Lanes> lanes_;  // likewise null
  std::unique_ptr<comm::BodyCarrier> bodies_;
  DeviceSources sources_;
  compute::Buffer counts_;  // of saturated numbers, by bucket
  compute::cuda::host::PinnedRoom read_;
};

}  // namespace shardrec::dense
