// Events of the trace that are learned later than they take place: what a device did, which the host calls for and
// hears of behind it. They are in rows of their own.
#pragma once

#include <cstdint>

#include "core/trace.h"

namespace shardrec::core {

// What a row of a device is of. `number`: of the collection; of a stack of layers, in its set of DDP parameters; of such
// a set 0.
enum class DeviceRow : uint32_t { kTables = 1, kLayers = 2, kGradients = 3 };

// The row of a device, whose number is behind those of collections.
constexpr TraceTrack device_track(int32_t rank, DeviceRow row, uint32_t number) noexcept {
  return {.rank = rank, .collection = (static_cast<uint32_t>(row) << 20) + number};
}

// Records an event of the past, behind stop_trace() too. Does nothing with what began before the trace or behind its end.
// name: a string literal. Any thread.
void record_past_event(const TraceTrack& track, const char* name, TraceClock::time_point start,
                       TraceClock::time_point end) noexcept;

// Has such events of one row. Before a trace ends or is read, those that are over are asked for.
class TraceSource {
 public:
  TraceSource() = default;
  TraceSource(const TraceSource&) = delete;
  TraceSource& operator=(const TraceSource&) = delete;

  // The row that events are in from now on; without one no trace has them. The thread that causes them.
  virtual void set_track(const TraceTrack& track) noexcept = 0;
  // Records what is over; does not wait. Any thread.
  virtual void record_what_is_over() noexcept = 0;

  // All that have joined.
  static void ask_all() noexcept;

 protected:
  ~TraceSource() = default;
  // Is asked from now on, or no longer: in the destructor of the class that answers.
  void join_trace() noexcept;
  void leave_trace() noexcept;

 private:
  TraceSource* next_ = nullptr;
  bool joined_ = false;
};

}  // namespace shardrec::core
