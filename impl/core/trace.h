// The trace: what each rank did when, in a bounded ring of the process that is read as Chrome's
// trace JSON. Off by default; then an event costs one relaxed load.
//
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace shardrec::core {

using TraceClock = std::chrono::steady_clock;

// The rank and the collection that an event belongs to: a row of the trace's picture.
struct TraceTrack {
  int32_t rank = 0;
  uint32_t collection = 0;
};

namespace detail {
inline std::atomic<bool> trace_is_on{false};
}
inline bool tracing() noexcept { return detail::trace_is_on.load(std::memory_order_relaxed); }

// This process' clock beside that of rank 0 of a group, when the group was made.
struct ClockOffset {
  uint64_t reference = 0;  // names the measurement, the same on all ranks
  int32_t rank = 0;
  int64_t offset = 0;       // nanoseconds: rank 0's TraceClock is this process' plus so much
  int64_t uncertainty = 0;  // nanoseconds, either way
};
// Keeps a measurement, which every trace of this process then tells; the last 16 stay. Throws
// bad_alloc.
void note_clock(const ClockOffset& clock);

// Forgets what was recorded and records up to `events` events from now on; when there are more, the
// oldest are dropped. Throws bad_alloc, and then nothing has changed.
void start_trace(size_t events);
// What was recorded stays to be read.
void stop_trace() noexcept;
// {"traceEvents": [...], ...}: an event of type X per recorded one, pid the rank, tid the
// collection. otherData holds the clocks' offsets, by which traces of several
// processes are laid side by side.
std::string trace_json();

// name: a string literal. Does nothing when no trace is on.
void record_event(const TraceTrack& track, const char* name, TraceClock::time_point start,
                  TraceClock::time_point end) noexcept;

// An event from here to the end of the scope.
class TraceScope {
 public:
  TraceScope(const TraceTrack& track, const char* name) noexcept : track_(track), name_(name) {
    if (tracing()) start_ = TraceClock::now();
  }
  ~TraceScope() {
    if (start_ != TraceClock::time_point{}) {
      record_event(track_, name_, start_, TraceClock::now());
    }
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  const TraceTrack track_;
  const char* name_;
  TraceClock::time_point start_{};
};

}  // namespace shardrec::core
