// When events of a device took place, by the host's clock: a pair of an event and the host's time, taken in a stream where
// nothing else is, and taken anew as the two clocks drift apart.
//
// Thread rule: one thread at a time.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>

#include "compute/cuda/host/stream.h"
#include "core/trace.h"

namespace shardrec::compute::cuda::host {

class DeviceTime {
 public:
  using Clock = core::TraceClock;

  // An age at which clocks that differ by 20 in 1,000,000 are 5 us apart.
  static constexpr std::chrono::milliseconds kFresh{250};

  explicit DeviceTime(int32_t device) noexcept : device_(device) {}

  // Is the last pair one that needs no new one yet?
  bool is_fresh() const noexcept { return taken_ && Clock::now() - looked_ < kFresh; }

  // Takes a pair where there is none or the last one is no longer fresh: the host waits for an event that nothing is
  // before, some 10 us. One that took long does not replace one that did not. oldest: pair of the oldest event whose time
  // is still to be asked for; another one must stay. Returns the number of the pair that events from now on are beside,
  // or none where the device fails.
  std::optional<size_t> pair(std::optional<size_t> oldest) noexcept;

  // Of an event that is over. None where the device fails.
  std::optional<core::TraceClock::time_point> time_of(size_t pair,
                                                      shardrec_cuda_event* event) const noexcept;

 private:
  struct Pair {
    std::unique_ptr<shardrec_cuda_event, EventDeleter> event;
    Clock::time_point time;  // of the host: halfway between before and behind
    Clock::duration width{};
  };

  bool prepare() noexcept;
  bool take(Pair& pair) noexcept;

  int32_t device_;
  std::unique_ptr<shardrec_cuda_stream, StreamDeleter> stream_;
  std::array<Pair, 2> pairs_;
  size_t current_ = 0;
  Clock::time_point looked_;  // when a pair was last taken or tried
  bool taken_ = false;
  bool failed_ = false;
};

}  // namespace shardrec::compute::cuda::host
