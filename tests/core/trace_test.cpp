// The order of a trace's spans.
#include "core/trace.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "core/trace_source.h"

namespace shardrec::core {
namespace {

TEST(Trace, HasCallsBeforeTheirPhasesAndSpansOfADeviceOneBehindTheOther) {
  const TraceTrack host{.rank = 0, .collection = 0};
  const TraceTrack device = device_track(0, DeviceRow::kLayers, 0);
  start_trace(10);
  const TraceClock::time_point start = TraceClock::now();
  const auto end = start + std::chrono::milliseconds(1);
  record_event(host, "phase", start, start + std::chrono::microseconds(1));
  record_event(host, "call", start, end);
  record_past_event(device, "long", start, end);
  record_past_event(device, "empty", start, start);
  stop_trace();
  const std::string trace = trace_json();
  const auto place = [&](const char* name) { return trace.find("\"" + std::string(name) + "\""); };
  EXPECT_LT(place("call"), place("phase"));
  EXPECT_LT(place("empty"), place("long"));
  EXPECT_NE(place("long"), std::string::npos);
}

}  // namespace
}  // namespace shardrec::core
