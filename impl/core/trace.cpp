#include "core/trace.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "core/trace_source.h"

namespace shardrec::core {
namespace {

struct Event {
  TraceTrack track;
  const char* name = "";
  int64_t start = 0;  // nanoseconds since the trace began
  int64_t duration = 0;
};

struct Trace {
  std::mutex mutex;
  std::vector<Event> ring;
  uint64_t recorded = 0;  // ever; the event n is in slot n mod the ring's size
  TraceClock::time_point start;
  TraceClock::time_point stop = TraceClock::time_point::max();
  int64_t unix_start = 0;  // nanoseconds, where no clocks were compared
  std::deque<ClockOffset> clocks;

  std::mutex sources_mutex;  // taken before those of sources, and theirs before `mutex`
  TraceSource* sources = nullptr;

  // With the mutex held.
  void add(const TraceTrack& track, const char* name, TraceClock::time_point from,
           TraceClock::time_point to) noexcept {
    if (ring.empty() || from < start) return;  // began before the trace did
    ring[recorded % ring.size()] = {.track = track,
                                    .name = name,
                                    .start = std::chrono::nanoseconds(from - start).count(),
                                    .duration = std::chrono::nanoseconds(to - from).count()};
    ++recorded;
  }
};

constexpr size_t kMostClocks = 16;
// Rows of devices have numbers from here on.
constexpr uint32_t kDeviceRows = uint32_t{1} << 20;

// Leaks: threads may still record while the process exits.
Trace& the_trace() {
  static Trace& trace = *std::make_unique<Trace>().release();
  return trace;
}

int64_t nanoseconds(TraceClock::duration duration) {
  return std::chrono::nanoseconds(duration).count();
}

std::string hexadecimal(uint64_t value) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return {digits.data(), end.ptr};
}

// Of one that device_track() made.
std::string row_name(uint32_t row) {
  const uint32_t number = row % kDeviceRows;
  switch (static_cast<DeviceRow>(row / kDeviceRows)) {
    case DeviceRow::kTables:
      return sentence("collection ", number, ", device");
    case DeviceRow::kLayers:
      return sentence("layers ", number, ", device");
    case DeviceRow::kGradients:
      break;
  }
  return "gradients of layers, device";
}

void name_row(JsonWriter& json, int32_t rank, uint32_t row) {
  json.begin_object();
  json.key("ph").text("M").key("name").text("thread_name").key("pid").integer(rank);
  json.key("tid").integer(row);
  json.key("args").begin_object().key("name").text(row_name(row)).end_object();
  json.end_object();
}

void name_process(JsonWriter& json, int32_t rank) {
  json.begin_object();
  json.key("ph").text("M").key("name").text("process_name").key("pid").integer(rank);
  json.key("args").begin_object().key("name").text(sentence("rank ", rank)).end_object();
  json.end_object();
  json.begin_object();
  json.key("ph").text("M").key("name").text("process_sort_index").key("pid").integer(rank);
  json.key("args").begin_object().key("sort_index").integer(rank).end_object();
  json.end_object();
}

}  // namespace

void note_clock(const ClockOffset& clock) {
  Trace& trace = the_trace();
  const std::lock_guard lock(trace.mutex);
  trace.clocks.push_back(clock);
  if (trace.clocks.size() > kMostClocks) trace.clocks.pop_front();
}

void start_trace(size_t events) {
  std::vector<Event> ring(events);
  Trace& trace = the_trace();
  const std::lock_guard lock(trace.mutex);
  trace.ring = std::move(ring);
  trace.recorded = 0;
  trace.start = TraceClock::now();
  trace.stop = TraceClock::time_point::max();
  trace.unix_start =
      std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  detail::trace_is_on.store(true, std::memory_order_relaxed);
}

void stop_trace() noexcept {
  TraceSource::ask_all();
  Trace& trace = the_trace();
  const std::lock_guard lock(trace.mutex);
  if (tracing()) trace.stop = TraceClock::now();
  detail::trace_is_on.store(false, std::memory_order_relaxed);
}

void TraceSource::join_trace() noexcept {
  Trace& trace = the_trace();
  const std::lock_guard lock(trace.sources_mutex);
  if (joined_) return;
  joined_ = true;
  next_ = trace.sources;
  trace.sources = this;
}

void TraceSource::leave_trace() noexcept {
  Trace& trace = the_trace();
  const std::lock_guard lock(trace.sources_mutex);
  if (!joined_) return;
  joined_ = false;
  TraceSource** at = &trace.sources;
  while (*at != this) at = &(*at)->next_;
  *at = next_;
}

void TraceSource::ask_all() noexcept {
  Trace& trace = the_trace();
  const std::lock_guard lock(trace.sources_mutex);
  for (TraceSource* source = trace.sources; source != nullptr; source = source->next_) {
    source->record_what_is_over();
  }
}

void record_event(const TraceTrack& track, const char* name, TraceClock::time_point start,
                  TraceClock::time_point end) noexcept {
  if (!tracing()) return;
  Trace& trace = the_trace();
  const std::lock_guard lock(trace.mutex);
  trace.add(track, name, start, end);
}

void record_past_event(const TraceTrack& track, const char* name, TraceClock::time_point start,
                       TraceClock::time_point end) noexcept {
  Trace& trace = the_trace();
  const std::lock_guard lock(trace.mutex);
  if (start < trace.stop) trace.add(track, name, start, end);
}

std::string trace_json() {
  TraceSource::ask_all();
  Trace& trace = the_trace();
  std::vector<Event> events;
  uint64_t recorded = 0;
  int64_t unix_start = 0;
  int64_t steady_start = 0;
  std::deque<ClockOffset> clocks;
  {
    const std::lock_guard lock(trace.mutex);
    events = trace.ring;
    recorded = trace.recorded;
    unix_start = trace.unix_start;
    steady_start = nanoseconds(trace.start.time_since_epoch());
    clocks = trace.clocks;
  }
  const uint64_t kept = std::min<uint64_t>(recorded, events.size());
  events.resize(kept);
  // A call ends after its phases and comes after them: viewers want it before. Spans of a device hold no others: of those
  // that begin at once all but the last are empty.
  const auto place = [](const Event& event) {
    const bool of_device = event.track.collection >= kDeviceRows;
    return std::tuple(event.start, of_device, of_device ? event.duration : -event.duration);
  };
  std::sort(events.begin(), events.end(),
            [&](const Event& a, const Event& b) { return place(a) < place(b); });
  std::set<int32_t> ranks;
  std::set<std::pair<int32_t, uint32_t>> device_rows;
  for (const Event& event : events) {
    ranks.insert(event.track.rank);
    if (event.track.collection < kDeviceRows) continue;
    device_rows.emplace(event.track.rank, event.track.collection);
  }

  JsonWriter json;
  json.begin_object().key("displayTimeUnit").text("ms");
  json.key("otherData").begin_object();
  json.key("version").integer(1);
  json.key("dropped_events").integer(static_cast<int64_t>(recorded - kept));
  json.key("start_unix_nanoseconds").integer(unix_start);
  json.key("start_steady_nanoseconds").integer(steady_start);
  json.key("clocks").begin_array();
  for (const ClockOffset& clock : clocks) {
    json.begin_object();
    json.key("reference").text(hexadecimal(clock.reference)).key("rank").integer(clock.rank);
    json.key("offset_nanoseconds").integer(clock.offset);
    json.key("uncertainty_nanoseconds").integer(clock.uncertainty);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  json.key("traceEvents").begin_array(JsonWriter::Style::kLines);
  for (const int32_t rank : ranks) name_process(json, rank);
  for (const auto& [rank, row] : device_rows) name_row(json, rank, row);
  for (const Event& event : events) {
    json.begin_object();
    const bool on_device = event.track.collection >= kDeviceRows;
    json.key("ph").text("X").key("cat").text(on_device ? "device" : "shardrec");
    json.key("name").text(event.name);
    json.key("pid").integer(event.track.rank).key("tid").integer(event.track.collection);
    json.key("ts").number(static_cast<double>(event.start) * 1e-3);
    json.key("dur").number(static_cast<double>(event.duration) * 1e-3);
    json.end_object();
  }
  json.end_array().end_object();
  return json.str();
}

}  // namespace shardrec::core
