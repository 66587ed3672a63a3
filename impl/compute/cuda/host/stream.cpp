#include "compute/cuda/host/stream.h"

#include "core/error.h"

namespace shardrec::compute::cuda::host {
namespace {

shardrec_cuda_stream* open_stream(int32_t device) {
  int32_t devices = 0;
  require(table().count_devices(&devices), "count its devices");
  if (device < 0 || device >= devices) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("device ", device, " does not exist: this process sees ", devices,
                              " CUDA devices"),
               {.value = device, .limit = devices});
  }
  require(table().open_device(device), "begin to use device ", device);
  shardrec_cuda_stream* stream = nullptr;
  require(table().create_stream(device, &stream), "make a stream of device ", device);
  return stream;
}

shardrec_cuda_event* make_event(int32_t device, HostWait host_wait) {
  shardrec_cuda_event* event = nullptr;
  const int32_t spins = host_wait == HostWait::kSpin ? 1 : 0;
  require(table().create_event(device, spins, &event), "make an event of device ", device);
  return event;
}

// What is wrong is the caller's where CUDA says one of these.
constexpr shardrec_cuda_error kInvalidValue = 1;
constexpr shardrec_cuda_error kInvalidResourceHandle = 400;

void require_caller(shardrec_cuda_error error, int64_t stream, int32_t device) {
  if (error == kInvalidValue || error == kInvalidResourceHandle) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("stream ", stream, " is no stream of device ", device),
               {.value = stream});
  }
  require(error, "join stream ", stream, " of the caller on device ", device);
}

}  // namespace

Stream::Stream(int32_t device, BookedBytes booked, HostWait host_wait,
               std::shared_ptr<const Stop> stop)
    : device_(device),
      booked_(std::move(booked)),
      host_wait_(host_wait),
      stop_(std::move(stop)),
      stream_(open_stream(device)) {}

void Stream::submit() {
  require(table().submit(handle()), "begin the operations of device ", device_);
}

void Stream::wait() {
  require(table().wait_for_stream(handle()), "finish the operations of device ", device_);
}

void Stream::copy(void* to, const void* from, size_t bytes) {
  require(table().copy(handle(), to, from, bytes), "copy ", bytes, " bytes on device ", device_);
}

void Stream::copy_kept(void* to, const void* from, size_t bytes) {
  require(table().copy_kept(handle(), to, from, bytes), "copy ", bytes, " bytes on device ",
          device_);
}

void Stream::copy_from_device(int32_t device, void* to, const void* from, size_t bytes) {
  require(table().copy_from_device(handle(), to, device, from, bytes), "copy ", bytes,
          " bytes from device ", device, " to ", device_);
}

void Stream::follow(const Event& event) {
  require(table().follow(handle(), event.handle()), "wait on device ", device_,
          " for operations of device ", event.device());
}

Event::Event(int32_t device, HostWait host_wait)
    : device_(device), event_(make_event(device, host_wait)) {}

void Stream::know_over(uint64_t place) noexcept {
  uint64_t known = known_over_.load(std::memory_order_relaxed);
  while (known < place &&
         !known_over_.compare_exchange_weak(known, place, std::memory_order_acq_rel)) {
  }
}

void Event::record(Stream& stream) {
  require(table().record(handle(), stream.handle()), "mark a place in the operations of device ",
          stream.device());
  stream_ = &stream;
  place_ = ++stream.recorded_;
}

void Event::wait() const {
  require(table().wait_for_event(handle()), "finish operations that were waited for");
  if (stream_ != nullptr) stream_->know_over(place_);
}

void Event::record_caller(int64_t stream) {
  stream_ = nullptr;
  require_caller(table().record_caller(handle(), stream), stream, device_);
}

void Event::hold_up_caller(int64_t stream) const {
  require_caller(table().caller_follows(stream, handle()), stream, device_);
}

}  // namespace shardrec::compute::cuda::host
