// The clock of a stream's operations: an event where a kind begins or ends, read when it is over.
//
// Thread rule: enter(), leave() and set_track() by the thread of the stream; the others by any.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "compute/cuda/host/clock/device_time.h"
#include "compute/cuda/host/stream.h"
#include "compute/operation_clock.h"
#include "core/trace_source.h"

namespace shardrec::compute::cuda::host {

// The host never waits, and asks which places are over when it is to know, or half of them are taken. Only while a trace
// is on, it waits for the events that device_time.h says, and, where that ends or the clock is destroyed, asks for the
// times of the last places.
// Between places more than kPlaces apart that are not over, time is not counted.
// Where the device fails no time is counted any more: the operations tell of it.
class EventClock final : public OperationClock, public core::TraceSource {
 public:
  // nanoseconds: by kind; empty where start() is not called, for traces alone. Throws OUT_OF_MEMORY, DEVICE_ERROR.
  EventClock(std::shared_ptr<Stream> stream, std::span<std::atomic<int64_t>> nanoseconds);
  // Where a trace is on, returns when the operations are over.
  ~EventClock() override;
  EventClock(const EventClock&) = delete;
  EventClock& operator=(const EventClock&) = delete;

  void start() noexcept override { started_.store(true, std::memory_order_relaxed); }
  void set_track(const core::TraceTrack& track) noexcept override;
  void enter(size_t kind, const char* name) noexcept override;
  void leave() noexcept override;
  // Counts what is over.
  void read() noexcept;
  void record_what_is_over() noexcept override { read(); }

 private:
  static constexpr size_t kPlaces = 256;  // of some ten steps
  struct Place {
    std::unique_ptr<shardrec_cuda_event, EventDeleter> event;
    std::optional<size_t> kind;  // of what follows
    bool counts = false;         // somebody wants to know the time
    const char* name = nullptr;  // in the trace; null: it does not have it
    size_t pair = 0;             // of DeviceTime, for the trace
  };

  Place& place(size_t number) noexcept { return places_[number % kPlaces]; }
  void put(std::optional<size_t> kind, const char* name) noexcept;
  // Of DeviceTime, of the oldest place that is to be in the trace.
  std::optional<size_t> oldest_pair() noexcept;
  // What follows the last place is of no kind: the place that would end it is not recorded.
  void forget_open_kind() noexcept;
  void trace(const Place& from, const Place& to) noexcept;
  void count_what_is_over() noexcept;
  // The first place that is not over; sets failed_.
  size_t end_of_over() noexcept;

  std::shared_ptr<Stream> stream_;
  std::span<std::atomic<int64_t>> nanoseconds_;
  std::atomic<bool> started_{false};
  std::mutex mutex_;  // guards what follows, up to track_
  std::array<Place, kPlaces> places_;
  size_t first_ = 0;  // the oldest place that is not counted
  size_t end_ = 0;
  bool failed_ = false;
  DeviceTime time_;
  std::optional<core::TraceTrack> track_;
  core::TraceClock::time_point traced_;  // the end of what the trace has
  bool is_source_ = false;               // of the trace
  std::optional<size_t> kind_;           // that was entered
  bool has_open_kind_ = false;           // of the last place
};

}  // namespace shardrec::compute::cuda::host
