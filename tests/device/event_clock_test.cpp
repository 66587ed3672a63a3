// Time of operations by events, and ranges for profilers.
#include "compute/cuda/host/clock/event_clock.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>

#include "compute/cuda/host/library_calls.h"
#include "core/error.h"
#include "device/held_streams.h"
#include "device/rank_on_device.h"
#include "embedding/tables/counters.h"
#include "shardrec/observe.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

using compute::cuda::host::EventClock;
using compute::cuda::host::Stream;
using std::chrono::milliseconds;

constexpr milliseconds kHeld{300};
constexpr int64_t kHeldNanoseconds = std::chrono::nanoseconds(kHeld).count();

class EventClocks : public HeldStreamsTest {
 protected:
  void SetUp() override {
    HeldStreamsTest::SetUp();
    if (!IsSkipped()) early_ = of_plugin<int64_t()>("simt_early_elapsed_times");
  }
  void TearDown() override {
    HeldStreamsTest::TearDown();
    if (early_ == nullptr) return;
    EXPECT_EQ(early_(), 0) << "times were asked for before their events took place";
  }
  void hold(const Stream& stream) { hold_(stream.number()); }
  void go_on_later() {
    // The time that the clocks are to count.
    std::this_thread::sleep_for(kHeld);
    go_on_();
  }

  std::shared_ptr<Stream> timed_ = std::make_shared<Stream>(0);
  std::array<std::atomic<int64_t>, 4> nanoseconds_{};
  int64_t (*early_)() = nullptr;
};

TEST_F(EventClocks, CountWhatTheStreamSpendsFromPlaceToPlace) {
  EventClock clock(timed_, nanoseconds_);
  clock.start();
  clock.enter(1, "one");
  hold(*timed_);
  clock.enter(2, "two");
  clock.leave();
  hold(*timed_);
  clock.enter(3, "three");
  clock.leave();
  EXPECT_EQ(nanoseconds_[1], 0) << "it is not over, and the host has not waited";
  go_on_later();
  timed_->wait();
  clock.read();
  EXPECT_GE(nanoseconds_[1], kHeldNanoseconds / 2);
  EXPECT_EQ(nanoseconds_[0], 0);
  EXPECT_LT(nanoseconds_[2], kHeldNanoseconds / 2);
  EXPECT_LT(nanoseconds_[3], kHeldNanoseconds / 2) << "it began behind what was of no kind";
}

TEST_F(EventClocks, CountFromTheStartOn) {
  EventClock clock(timed_, nanoseconds_);
  clock.enter(1, "one");
  hold(*timed_);
  clock.enter(2, "two");
  clock.start();
  clock.leave();
  clock.enter(3, "three");
  go_on_later();
  clock.leave();
  timed_->wait();
  clock.read();
  EXPECT_EQ(nanoseconds_[1], 0) << "nobody wanted to know";
  EXPECT_EQ(nanoseconds_[2], 0) << "its beginning was not marked";
  EXPECT_GT(nanoseconds_[3], 0);
}

// A lookup is destroyed, which reads the clock, while another one of its collection is in a call.
TEST_F(EventClocks, AreReadByAnyThread) {
  EventClock clock(timed_, nanoseconds_);
  clock.start();
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over) clock.read();
  });
  for (int i = 0; i < 300; ++i) {
    clock.enter(1, "one");
    clock.leave();
  }
  over = true;
  other.join();
  clock.enter(2, "two");
  hold(*timed_);
  clock.leave();
  go_on_later();
  timed_->wait();
  clock.read();
  EXPECT_GE(nanoseconds_[2], kHeldNanoseconds / 2) << "it counts still";
}

// More places than there is room for: the oldest are forgotten, nobody waits, and later ones count.
TEST_F(EventClocks, ForgetTheOldestOfTooManyPlaces) {
  EventClock clock(timed_, nanoseconds_);
  clock.start();
  hold(*timed_);
  for (int i = 0; i < 500; ++i) clock.enter(1, "one");
  clock.leave();
  go_on_();
  timed_->wait();
  clock.read();
  const int64_t before = nanoseconds_[1];
  clock.enter(1, "one");
  hold(*timed_);
  clock.leave();
  go_on_later();
  timed_->wait();
  clock.read();
  EXPECT_GE(nanoseconds_[1] - before, kHeldNanoseconds / 2);
}

// What is enqueued so far begins at a place. That it cannot is told by whoever asks next, as it is without a clock.
TEST_F(EventClocks, LeaveAFailureToTheNextOperation) {
  EventClock clock(timed_, nanoseconds_);
  clock.start();
  const auto fail = [](int64_t /*stream*/, const void* /*values*/) -> shardrec_cuda_error {
    return SHARDREC_CUDA_LIBRARY_FAILED;
  };
  const int64_t value = 0;
  compute::cuda::host::call_library(*timed_, fail, &value, sizeof value);
  clock.enter(1, "one");
  EXPECT_THROW(timed_->submit(), core::Error);
  EXPECT_NO_THROW(timed_->submit()) << "it is told once";
  hold(*timed_);
  clock.leave();
  go_on_later();
  timed_->wait();
  clock.read();
  EXPECT_GE(nanoseconds_[1], kHeldNanoseconds / 2) << "it counts still";
}

double seconds_of_phases() {
  char* text = nullptr;
  EXPECT_OK(shardrec_counters_text(&text));
  const std::string all = text;
  shardrec_text_free(text);
  double sum = 0;
  for (size_t at = 0; (at = all.find("shardrec_phase_seconds_total{", at)) != std::string::npos;) {
    at = all.find('}', at);
    sum += std::strtod(all.c_str() + at + 1, nullptr);
  }
  return sum;
}

TEST_F(EventClocks, CountThePhasesOfSteps) {
  const auto begun = of_plugin<int64_t(const char*)>("simt_ranges_begun");
  const auto open = of_plugin<int64_t()>("simt_open_ranges");
  Rank device(0);
  ASSERT_EQ(device.status(), SHARDREC_OK) << shardrec_last_error();
  ASSERT_OK(shardrec_lookup_set_stream(device.lookup(), caller_.number()));
  double none = -1;
  ASSERT_OK(shardrec_collection_stat(device.tables(), SHARDREC_STAT_SECONDS_ROUTE,
                                     SHARDREC_ALL_TABLES, &none));
  EXPECT_EQ(none, 0) << "the clock starts here";
  std::array<int64_t, embedding::kPhases> before{};
  for (size_t p = 0; p < before.size(); ++p) before[p] = begun(embedding::kPhaseNames[p]);
  Batch batch;
  const auto gradient = memory_->allocate(batch.gradient.size() * sizeof(float));
  const auto on_device = matrix_at(gradient->data, true);
  stream_->wait();
  const auto ids = vector_at(batch.ids.data(), SHARDREC_INT64, batch.ids.size(), false);
  const auto lengths = vector_at(batch.lengths.data(), SHARDREC_INT32, batch.lengths.size(), false);
  const auto out = matrix_at(batch.out.data(), false);
  const auto seconds_of_step = [&](bool held) {
    const double counted = seconds_of_phases();
    EXPECT_OK(
        begin_batch(device.lookup(), {.batch_size = kBatch, .values = &ids, .lengths = &lengths}));
    EXPECT_OK(shardrec_lookup_forward(device.lookup(), 0, &out));
    compute::cuda::host::require(
        compute::cuda::host::table().fill(caller_.handle(), gradient->data, 0,
                                          batch.gradient.size() * sizeof(float)),
        "write gradients");
    std::thread later;
    if (held) {
      HeldStreamsTest::hold();
      later = std::thread([&] { go_on_later(); });
    }
    EXPECT_OK(shardrec_lookup_set_gradient(device.lookup(), 0, &on_device));
    EXPECT_OK(shardrec_lookup_backward(device.lookup(), SHARDREC_UPDATE_APPLY));
    if (held) later.join();
    EXPECT_OK(shardrec_collection_wait_device(device.tables()));
    return seconds_of_phases() - counted;
  };
  // Once more where the processor had other things to do.
  constexpr double kHalf = std::chrono::duration<double>(kHeld).count() / 2;
  double longer = kHalf;
  for (int round = 0; round < 4 && longer >= kHalf; ++round) {
    const double without = seconds_of_step(false);
    EXPECT_GT(without, 0);
    longer = std::min(longer, seconds_of_step(true) - without);
  }
  EXPECT_LT(longer, kHalf)
      << "what the caller's stream did before backward is not the library's time";
  for (size_t p = 0; p < before.size(); ++p) {
    EXPECT_GT(begun(embedding::kPhaseNames[p]), before[p]) << embedding::kPhaseNames[p];
  }
  EXPECT_EQ(open(), 0);
}

}  // namespace
}  // namespace shardrec::test
