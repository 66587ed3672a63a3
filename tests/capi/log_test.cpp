// The log: a ring that is pulled, or a sink.
#include "core/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "capi_test.h"
#include "core/error.h"
#include "shardrec/native.h"
#include "support/asleep.h"
#include "support/eventually.h"

namespace shardrec::test {
namespace {

using Clock = std::chrono::steady_clock;

// Each test begins with an empty ring and the default level.
class Log : public ::testing::Test {
 protected:
  void SetUp() override { reset(); }
  void TearDown() override {
    shardrec_log_set_sink(nullptr, nullptr);
    reset();
  }

  static void reset() {
    EXPECT_OK(shardrec_log_set_level(SHARDREC_LOG_WARNING));
    while (!next().empty()) {
    }
  }

  // "" when there is none.
  static std::string next(int32_t timeout_ms = 0) {
    char* text = nullptr;
    EXPECT_OK(shardrec_log_next(timeout_ms, nullptr, nullptr, &text));
    return take(text);
  }
};

TEST_F(Log, GivesMessagesInOrderWithLevelAndRank) {
  core::log(SHARDREC_LOG_WARNING, 3, "first");
  core::log(SHARDREC_LOG_ERROR, -1, "second");
  shardrec_log_level level = SHARDREC_LOG_DEBUG;
  int32_t rank = 0;
  char* text = nullptr;
  EXPECT_OK(shardrec_log_next(0, &level, &rank, &text));
  EXPECT_EQ(take(text), "first");
  EXPECT_EQ(level, SHARDREC_LOG_WARNING);
  EXPECT_EQ(rank, 3);
  EXPECT_OK(shardrec_log_next(0, &level, &rank, &text));
  EXPECT_EQ(take(text), "second");
  EXPECT_EQ(level, SHARDREC_LOG_ERROR);
  EXPECT_EQ(rank, -1);
  EXPECT_OK(shardrec_log_next(0, nullptr, nullptr, &text));
  EXPECT_EQ(text, nullptr);
}

TEST_F(Log, MessagesBelowTheLevelAreNotRecorded) {
  core::log(SHARDREC_LOG_INFO, -1, "below the default");
  EXPECT_EQ(next(), "");
  EXPECT_OK(shardrec_log_set_level(SHARDREC_LOG_DEBUG));
  core::log(SHARDREC_LOG_DEBUG, -1, "wanted");
  EXPECT_EQ(next(), "wanted");
  EXPECT_OK(shardrec_log_set_level(SHARDREC_LOG_OFF));
  core::log(SHARDREC_LOG_ERROR, -1, "silenced");
  EXPECT_EQ(next(), "");
}

TEST_F(Log, TheOldestMessagesAreDroppedWhenTheRingIsFull) {
  for (int i = 0; i < 1500; ++i) core::log(SHARDREC_LOG_ERROR, -1, std::to_string(i));
  for (int i = 1500 - 1024; i < 1500; ++i) EXPECT_EQ(next(), std::to_string(i));
  EXPECT_EQ(next(), "");
}

TEST_F(Log, NextWaitsNoLongerThanTheTimeout) {
  const auto begin = Clock::now();
  EXPECT_EQ(next(50), "");
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(50));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(20));
}

TEST_F(Log, NextReturnsWhenAMessageArrives) {
  std::thread writer([reader = gettid()] {
    EXPECT_TRUE(eventually([&] { return is_asleep(reader); }));
    core::log(SHARDREC_LOG_ERROR, 0, "here");
  });
  const auto begin = Clock::now();
  EXPECT_EQ(next(60000), "here");
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(30));
  writer.join();
}

TEST_F(Log, ManyThreadsLoseNoMessage) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 200; ++i) core::log(SHARDREC_LOG_ERROR, -1, "x");
    });
  }
  int count = 0;
  for (std::thread& thread : threads) thread.join();
  while (!next().empty()) ++count;
  EXPECT_EQ(count, 800);
}

struct Heard {
  std::vector<std::string> texts;
  shardrec_status inside = SHARDREC_OK;
};

TEST_F(Log, ASinkGetsMessagesInPlaceOfTheRing) {
  Heard heard;
  const auto sink = [](void* context, shardrec_log_level level, int32_t rank, const char* text) {
    static_cast<Heard*>(context)->texts.push_back(
        core::sentence(static_cast<int>(level), " ", rank, " ", text));
  };
  EXPECT_OK(shardrec_log_set_sink(sink, &heard));
  core::log(SHARDREC_LOG_ERROR, 7, "to the sink");
  EXPECT_EQ(next(), "");
  EXPECT_OK(shardrec_log_set_sink(nullptr, nullptr));
  core::log(SHARDREC_LOG_ERROR, 7, "to the ring");
  EXPECT_EQ(next(), "to the ring");
  EXPECT_EQ(heard.texts, std::vector<std::string>{"3 7 to the sink"});
}

TEST_F(Log, ASinkThatCallsBackGetsBusyAndLosesItsMessages) {
  Heard heard;
  const auto sink = [](void* context, shardrec_log_level, int32_t, const char* text) {
    auto* all = static_cast<Heard*>(context);
    all->texts.emplace_back(text);
    core::log(SHARDREC_LOG_ERROR, -1, "from inside");
    all->inside = shardrec_log_set_sink(nullptr, nullptr);
  };
  EXPECT_OK(shardrec_log_set_sink(sink, &heard));
  core::log(SHARDREC_LOG_ERROR, -1, "one");
  EXPECT_EQ(heard.inside, SHARDREC_BUSY);
  EXPECT_EQ(heard.texts, std::vector<std::string>{"one"});
}

TEST_F(Log, ASinkThatThrowsHarmsNobody) {
  const auto sink = [](void*, shardrec_log_level, int32_t, const char*) { throw 1; };
  EXPECT_OK(shardrec_log_set_sink(sink, nullptr));
  core::log(SHARDREC_LOG_ERROR, -1, "one");
  EXPECT_OK(shardrec_log_set_sink(nullptr, nullptr));
}

TEST_F(Log, TheFormerSinkIsNoLongerRunningWhenSetSinkReturns) {
  struct State {
    std::atomic<bool> inside{false};
    std::atomic<bool> entered{false};
    const pid_t caller = gettid();  // of set_sink
  } state;
  const auto sink = [](void* context, shardrec_log_level, int32_t, const char*) {
    auto* shared = static_cast<State*>(context);
    shared->inside.store(true);
    shared->entered.store(true);
    EXPECT_TRUE(eventually([&] { return is_asleep(shared->caller); }));
    shared->inside.store(false);
  };
  EXPECT_OK(shardrec_log_set_sink(sink, &state));
  std::thread writer([] { core::log(SHARDREC_LOG_ERROR, -1, "slow"); });
  // Asked without sleeping: the sink waits for this thread to sleep.
  while (!state.entered.load()) std::this_thread::yield();
  EXPECT_OK(shardrec_log_set_sink(nullptr, nullptr));
  EXPECT_FALSE(state.inside.load());
  writer.join();
}

}  // namespace
}  // namespace shardrec::test
