// The clock of a stream's operations: an event where a kind begins or ends, read when it is over.
//
// Thread rule: enter() and leave() by the thread of the stream; start() and read() by any.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "compute/cuda/host/stream.h"
#include "compute/operation_clock.h"

namespace shardrec::compute::cuda::host {

// The host never waits, and asks which places are over when it is to know, or half of them are taken.
// Between places more than kPlaces apart that are not over, time is not counted.
// Where the device fails no time is counted any more: the operations tell of it.
class EventClock final : public OperationClock {
 public:
  // Throws OUT_OF_MEMORY, DEVICE_ERROR.
  EventClock(std::shared_ptr<Stream> stream, std::span<std::atomic<int64_t>> nanoseconds);

  void start() noexcept override { started_.store(true, std::memory_order_relaxed); }
  void enter(size_t kind, const char* name) noexcept override;
  void leave() noexcept override;
  // Counts what is over.
  void read() noexcept;

 private:
  static constexpr size_t kPlaces = 256;  // of some ten steps
  struct Place {
    std::unique_ptr<shardrec_cuda_event, EventDeleter> event;
    std::optional<size_t> kind;  // of what follows
  };

  Place& place(size_t number) noexcept { return places_[number % kPlaces]; }
  void put(std::optional<size_t> kind) noexcept;
  void count_what_is_over() noexcept;
  // The first place that is not over; sets failed_.
  size_t end_of_over() noexcept;

  std::shared_ptr<Stream> stream_;
  std::span<std::atomic<int64_t>> nanoseconds_;
  std::atomic<bool> started_{false};
  std::mutex mutex_;  // guards what follows, up to kind_
  std::array<Place, kPlaces> places_;
  size_t first_ = 0;  // the oldest place that is not counted
  size_t end_ = 0;
  bool failed_ = false;
  std::optional<size_t> kind_;  // that was entered
};

}  // namespace shardrec::compute::cuda::host
