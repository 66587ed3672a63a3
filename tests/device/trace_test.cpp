// Traces with what a device did: by its own events, on the clock of the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compute/cuda/host/clock/event_clock.h"
#include "compute/cuda/host/clock/stream_trace.h"
#include "core/trace_source.h"
#include "device/held_streams.h"
#include "device/rank_on_device.h"
#include "support/eventually.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

using compute::cuda::host::EventClock;
using compute::cuda::host::Stream;
using compute::cuda::host::StreamTrace;
using core::TraceClock;

constexpr std::chrono::milliseconds kHeld{40};
constexpr int64_t kDeviceRow = int64_t{1} << 20;  // of collection 0

struct Traced {
  std::string name;
  std::string category;
  int64_t rank = 0;
  int64_t row = 0;
  double start = 0;  // us since the trace began
  double end = 0;
};

// All spans of a trace in the order of their beginnings.
std::vector<Traced> spans_of(const nlohmann::json& trace) {
  std::vector<Traced> spans;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const double start = event.at("ts");
    spans.push_back({.name = event.at("name"),
                     .category = event.at("cat"),
                     .rank = event.at("pid"),
                     .row = event.at("tid"),
                     .start = start,
                     .end = start + event.at("dur").get<double>()});
  }
  return spans;
}

// Returns when so much time has gone by.
void pass(std::chrono::milliseconds time) {
  const auto until = TraceClock::now() + time;
  EXPECT_TRUE(eventually([&] { return TraceClock::now() >= until; }));
}

class DeviceTraces : public HeldStreamsTest {
 protected:
  void SetUp() override {
    HeldStreamsTest::SetUp();
    if (IsSkipped()) return;
    core::start_trace(1000);
    begun_ = TraceClock::now();
  }
  void TearDown() override {
    core::stop_trace();
    HeldStreamsTest::TearDown();
  }
  // By the trace's clock, up to what start_trace() took.
  double now() const {
    return std::chrono::duration<double, std::micro>(TraceClock::now() - begun_).count();
  }
  std::vector<Traced> ended() {
    core::stop_trace();
    return spans_of(nlohmann::json::parse(core::trace_json()));
  }

  std::shared_ptr<Stream> stream_of_device_ = std::make_shared<Stream>(0);
  TraceClock::time_point begun_;
  std::array<std::atomic<int64_t>, 3> nanoseconds_{};
};

constexpr core::TraceTrack kTrack = core::device_track(3, core::DeviceRow::kTables, 2);
// Between the clocks, where the processor has other things to do.
constexpr double kUnsure = 10000;

TEST_F(DeviceTraces, HaveTheTimesOfTheDeviceOnTheHostsClock) {
  EventClock clock(stream_of_device_, nanoseconds_);
  clock.set_track(kTrack);
  const double before = now();
  clock.enter(1, "one");
  stream_of_device_->wait();  // the device has come to it
  const double called = now();
  hold_(stream_of_device_->number());
  clock.enter(2, "two");
  clock.leave();
  pass(kHeld);
  go_on_();
  stream_of_device_->wait();
  const double after = now();
  const std::vector<Traced> spans = ended();
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].name, "one");
  EXPECT_EQ(spans[1].name, "two");
  for (const Traced& span : spans) {
    EXPECT_EQ(span.category, "device");
    EXPECT_EQ(span.rank, 3);
    EXPECT_EQ(span.row, kDeviceRow + 2);
  }
  EXPECT_GE(spans[0].start, before - kUnsure);
  EXPECT_LE(spans[0].start, called + kUnsure);
  EXPECT_GE(spans[0].end - spans[0].start, std::chrono::microseconds(kHeld).count() * 0.9);
  EXPECT_NEAR(spans[1].start, spans[0].end, 0.01);
  EXPECT_GE(spans[1].start, called)
      << "it is when the device came to it, not when it was called for";
  EXPECT_LE(spans[1].end, after + kUnsure);
  EXPECT_EQ(nanoseconds_[1], 0) << "nobody wanted the sums";
}

int64_t device_calls() {
  shardrec_cuda_calls counts{};
  compute::cuda::host::table().count_calls(&counts);
  return counts.calls;
}

TEST_F(DeviceTraces, AreWithoutCallsOfTheDeviceWhereNoneIsTaken) {
  core::stop_trace();
  EventClock clock(stream_of_device_, nanoseconds_);
  clock.set_track(kTrack);
  const auto layers = std::make_unique<StreamTrace>(stream_of_device_);
  layers->set_track(kTrack);
  const int64_t before = device_calls();
  clock.enter(1, "one");
  clock.leave();
  {
    const StreamTrace::Span span(*layers, "two");
  }
  EXPECT_EQ(device_calls(), before);
}

TEST_F(DeviceTraces, HaveNothingOfWhatEndsBehindThem) {
  EventClock clock(stream_of_device_, nanoseconds_);
  clock.set_track(kTrack);
  clock.enter(1, "before");
  clock.enter(2, "cut");
  stream_of_device_->wait();
  core::stop_trace();
  clock.leave();
  clock.enter(1, "between");
  clock.leave();
  stream_of_device_->wait();
  std::vector<std::string> names;
  for (const Traced& span : ended()) names.push_back(span.name);
  EXPECT_EQ(names, std::vector<std::string>{"before"});
  core::start_trace(1000);
  pass(std::chrono::milliseconds(20));  // surely behind its beginning
  clock.enter(1, "behind");
  clock.leave();
  stream_of_device_->wait();
  const std::vector<Traced> spans = ended();
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(spans[0].name, "behind");
}

// More places than a clock keeps; a pair of times that is no longer fresh in between.
TEST_F(DeviceTraces, AreInOrderOverPairsOfTimes) {
  EventClock clock(stream_of_device_, nanoseconds_);
  clock.set_track(kTrack);
  constexpr size_t kSpans = 300;
  for (size_t i = 0; i < kSpans; ++i) {
    clock.enter(1, "span");
    clock.leave();
    if (i % 100 == 99) {
      stream_of_device_->wait();
      pass(compute::cuda::host::DeviceTime::kFresh / 2);
    }
  }
  stream_of_device_->wait();
  const std::vector<Traced> spans = ended();
  ASSERT_EQ(spans.size(), kSpans);
  for (size_t i = 1; i < kSpans; ++i) {
    EXPECT_GE(spans[i].start, spans[i - 1].end - 0.01) << i;
  }
}

TEST_F(DeviceTraces, OfAClockThatIsGoneAreWhole) {
  {
    StreamTrace layers(stream_of_device_);
    layers.set_track(core::device_track(1, core::DeviceRow::kLayers, 4));
    const StreamTrace::Span span(layers, "dense forward");
  }
  core::stop_trace();
  const nlohmann::json trace = nlohmann::json::parse(core::trace_json());
  const std::vector<Traced> spans = spans_of(trace);
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(spans[0].name, "dense forward");
  std::string row;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("name") != "thread_name") continue;
    EXPECT_EQ(event.at("tid"), spans[0].row);
    row = event.at("args").at("name");
  }
  EXPECT_EQ(row, "layers 4, device");
}

// What the device does of a call comes behind the call's beginning, phase after phase, also where the caller's stream
// holds it up.
TEST_F(DeviceTraces, HaveThePhasesOfSteps) {
  Rank device(0);
  ASSERT_EQ(device.status(), SHARDREC_OK) << shardrec_last_error();
  Batch batch;
  const auto ids = vector_at(batch.ids.data(), SHARDREC_INT64, batch.ids.size(), false);
  const auto lengths = vector_at(batch.lengths.data(), SHARDREC_INT32, batch.lengths.size(), false);
  const auto out = matrix_at(batch.out.data(), false);
  const auto gradient = matrix_at(batch.gradient.data(), false);
  ASSERT_OK(
      begin_batch(device.lookup(), {.batch_size = kBatch, .values = &ids, .lengths = &lengths}));
  ASSERT_OK(shardrec_lookup_forward(device.lookup(), 0, &out));
  ASSERT_OK(shardrec_lookup_set_gradient(device.lookup(), 0, &gradient));
  ASSERT_OK(shardrec_lookup_backward(device.lookup(), SHARDREC_UPDATE_APPLY));
  ASSERT_OK(shardrec_collection_wait_device(device.tables()));
  std::map<std::string, Traced> calls;  // of the host
  std::map<std::string, Traced> phases;
  double over = 0;
  for (const Traced& span : ended()) {
    if (span.category == "shardrec") {
      calls.emplace(span.name, span);
      continue;
    }
    EXPECT_EQ(span.row, kDeviceRow);
    EXPECT_GE(span.start, over - 0.01) << span.name << ": phases of a stream do not overlap";
    over = span.end;
    phases.emplace(span.name, span);  // the first of its name
  }
  for (const auto& [call, name] :
       {std::pair("begin", "route"), {"forward", "lookup"}, {"backward", "update"}}) {
    ASSERT_EQ(phases.count(name), 1U) << name;
    ASSERT_EQ(calls.count(call), 1U) << call;
    EXPECT_GE(phases[name].start, calls[call].start - kUnsure) << name;
  }
  EXPECT_LT(phases["route"].start, phases["lookup"].start);
  EXPECT_LT(phases["lookup"].start, phases["update"].start);
}

}  // namespace
}  // namespace shardrec::test
