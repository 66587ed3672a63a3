#include "compute/cuda/backend.h"

#include <optional>
#include <utility>

#include "compute/cpu/backend.h"
#include "compute/cpu/kernels/dispatch.h"
#include "compute/cuda/host/assembly/family.h"
#include "compute/cuda/host/caller_order.h"
#include "compute/cuda/host/clock/event_clock.h"
#include "compute/cuda/host/event_marks.h"
#include "compute/cuda/host/gradients/family.h"
#include "compute/cuda/host/gradients/non_finite_search.h"
#include "compute/cuda/host/lookup/family.h"
#include "compute/cuda/host/memory.h"
#include "compute/cuda/host/routing/family.h"
#include "compute/cuda/host/routing/pinned_staging.h"
#include "compute/cuda/host/rows/family.h"
#include "compute/cuda/host/slots/family.h"
#include "compute/cuda/host/stream.h"
#include "compute/cuda/host/transfer/family.h"

namespace shardrec::compute::cuda {
namespace {

using namespace host;

class DeviceBackend final : public Backend {
 public:
  DeviceBackend(std::shared_ptr<Stream> stream, const BackendOptions& options)
      : Backend({transfer_, routing_, lookup_, assembly_, gradients_, rows_, slots_}),
        stream_(std::move(stream)),
        peers_in_process_(options.peers_in_process),
        marks_(*stream_, options.alone),
        caller_order_(*stream_),
        memory_(make_memory(stream_)),
        host_memory_(book(make_pinned_memory(), options.booked)),
        cpu_(make_cpu_backend(cpu_kernels(), options.threads, host_memory_, host_memory_)),
        transfer_(stream_, cpu_->transfer()),
        routing_(stream_),
        lookup_(stream_),
        assembly_(stream_),
        gradients_(stream_),
        rows_(stream_),
        slots_(stream_) {}

  const std::shared_ptr<Memory>& memory() override { return memory_; }
  const std::shared_ptr<Memory>& host_memory() override { return host_memory_; }
  core::DeviceSet caller_devices() const override { return {.cuda = stream_->device()}; }
  bool reaches_host() const override { return false; }
  std::shared_ptr<HostStaging> make_host_staging() override {
    if (copies_ == nullptr) {
      copies_ = std::make_shared<Stream>(stream_->device(), stream_->booked(), stream_->host_wait(),
                                         stream_->stop());
    }
    return std::make_shared<PinnedStaging>(copies_, stream_, routing_);
  }
  void wait() override {
    stream_->wait();
    stream_->check_stop();
    if (clock_.has_value()) clock_->read();
  }
  void submit() override { stream_->submit(); }
  bool has_lost() const override { return stream_->has_lost(); }
  void forget_lost() override { stream_->forget_lost(); }
  void follow_caller(int64_t stream) override { caller_order_.follow(stream, *stream_); }
  void hold_up_caller(int64_t stream) override { caller_order_.hold_up(stream, *stream_); }
  OperationClock* time_operations(std::span<std::atomic<int64_t>> nanoseconds) override {
    return &clock_.emplace(stream_, nanoseconds);
  }
  std::unique_ptr<NonFiniteSearch> make_non_finite_search() override {
    return std::make_unique<FirstNonFinite>(stream_);
  }
  Marks* marks() override { return &marks_; }
  bool peers_reach_memory() const override { return peers_in_process_; }

 private:
  std::shared_ptr<Stream> stream_;
  std::shared_ptr<Stream>
      copies_;  // of callers' batches; null: none lay in the host's memory so far
  bool peers_in_process_;
  EventMarks marks_;
  CallerOrder caller_order_;
  std::optional<EventClock> clock_;
  std::shared_ptr<Memory> memory_;
  std::shared_ptr<Memory> host_memory_;
  std::unique_ptr<Backend> cpu_;
  TransferFamily transfer_;
  RoutingFamily routing_;
  LookupFamily lookup_;
  AssemblyFamily assembly_;
  GradientFamily gradients_;
  RowFamily rows_;
  SlotFamily slots_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const BackendOptions& options) {
  return make_cuda_backend(
      std::make_shared<Stream>(options.device, options.booked, options.wait, options.stop),
      options);
}

std::unique_ptr<Backend> make_cuda_backend(std::shared_ptr<Stream> stream,
                                           const BackendOptions& options) {
  return std::make_unique<DeviceBackend>(std::move(stream), options);
}

}  // namespace shardrec::compute::cuda
