// A queue of operations of one device, and events in it.
//
// Thread rule: a Stream and what is made with it by one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "compute/booked_memory.h"
#include "compute/cuda/host/plugin.h"
#include "compute/host_wait.h"
#include "compute/stop.h"

namespace shardrec::compute::cuda::host {

struct StreamDeleter {
  void operator()(shardrec_cuda_stream* stream) const noexcept { table().destroy_stream(stream); }
};
struct EventDeleter {
  void operator()(shardrec_cuda_event* event) const noexcept { table().destroy_event(event); }
};

class Event;

// What is enqueued here takes place in order. All functions throw DEVICE_ERROR.
class Stream {
 public:
  // Throws also UNSUPPORTED (no plug-in), INVALID_ARGUMENT (no such device), OUT_OF_MEMORY.
  // booked: what memory.h allocates for it; null: nobody counts. host_wait: of events that are made for it. stop: as
  // BackendOptions has it.
  explicit Stream(int32_t device, BookedBytes booked = nullptr,
                  HostWait host_wait = HostWait::kSleep,
                  std::shared_ptr<const Stop> stop = nullptr);

  int32_t device() const noexcept { return device_; }
  const BookedBytes& booked() const noexcept { return booked_; }
  HostWait host_wait() const noexcept { return host_wait_; }
  const std::shared_ptr<const Stop>& stop() const noexcept { return stop_; }
  // Behind a wait, for what the host goes by: throws why operations may have read zeros instead of messages.
  void check_stop() const {
    if (stop_ != nullptr) stop_->check();
  }
  shardrec_cuda_stream* handle() const noexcept { return stream_.get(); }

  // What was enqueued takes place. Operations, copies of what is kept and fills may wait in a list until this, or
  // anything else, is called; an event is recorded behind them, and whoever asks for number() enqueues behind them.
  void submit();
  // Returns when all that was enqueued is over. How it waits is the program's affair (cudaSetDeviceFlags()).
  void wait();
  // Did updates of rows not take place for an error that was thrown? forget_lost(): the rows are written otherwise.
  bool has_lost() const noexcept { return table().lost(handle(), 0) != 0; }
  void forget_lost() noexcept { table().lost(handle(), 1); }
  // Memory of devices, and pinned memory (memory.h), which stays as it is until the copy is over.
  void copy(void* to, const void* from, size_t bytes);
  // The same where the host's memory is kept as it is until an event that is recorded behind it is over.
  void copy_kept(void* to, const void* from, size_t bytes);
  // From memory of another device.
  void copy_from_device(int32_t device, void* to, const void* from, size_t bytes);
  // What is enqueued from now on takes place behind the event, which may be of another device.
  void follow(const Event& event);
  // As callers name streams: the value of a cudaStream_t.
  int64_t number() const noexcept { return table().stream_number(handle()); }

  // The place of the next event that is recorded here; places are counted through.
  uint64_t next_place() const noexcept { return recorded_ + 1; }
  // Does the host know, having waited for an event at or behind the place, that what is before it is over?
  bool is_known_over(uint64_t place) const noexcept {
    return place <= known_over_.load(std::memory_order_acquire);
  }

 private:
  friend class Event;
  // Any thread.
  void know_over(uint64_t place) noexcept;

  int32_t device_;
  BookedBytes booked_;
  HostWait host_wait_;
  std::shared_ptr<const Stop> stop_;
  std::unique_ptr<shardrec_cuda_stream, StreamDeleter> stream_;
  uint64_t recorded_ = 0;
  std::atomic<uint64_t> known_over_{0};
};

// A place in a stream. One that was never recorded is over.
class Event {
 public:
  explicit Event(int32_t device, HostWait host_wait = HostWait::kSleep);
  // Of the stream's device, waited for as the stream says.
  explicit Event(const Stream& stream) : Event(stream.device(), stream.host_wait()) {}

  int32_t device() const noexcept { return device_; }
  // The stream outlives the event's wait().
  void record(Stream& stream);
  void wait() const;
  // A caller's stream of the event's device: the event is where it is now, or holds up what the caller
  // enqueues from now on. Throws INVALID_ARGUMENT (no stream of the device), DEVICE_ERROR.
  void record_caller(int64_t stream);
  void hold_up_caller(int64_t stream) const;
  shardrec_cuda_event* handle() const noexcept { return event_.get(); }

 private:
  int32_t device_;
  std::unique_ptr<shardrec_cuda_event, EventDeleter> event_;
  Stream* stream_ = nullptr;  // where it was recorded; null: in a caller's, or never
  uint64_t place_ = 0;
};

}  // namespace shardrec::compute::cuda::host
