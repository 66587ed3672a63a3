#include "core/threads.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <thread>
#include <vector>

#include "support/meeting.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#if defined(__has_feature)
#define SHARDREC_HAS_FEATURE(name) __has_feature(name)
#else
#define SHARDREC_HAS_FEATURE(name) 0
#endif
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !SHARDREC_HAS_FEATURE(address_sanitizer) && !SHARDREC_HAS_FEATURE(thread_sanitizer)
#define SHARDREC_COUNTS_ALLOCATIONS 1
#else
#define SHARDREC_COUNTS_ALLOCATIONS 0
#endif

#if SHARDREC_COUNTS_ALLOCATIONS
// Every allocation of the process is counted; operator new ends in malloc.
namespace {
std::atomic<int64_t> allocations{0};
}  // namespace

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(memory, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? ENOMEM : 0;
}
}
#endif

namespace shardrec::core {
namespace {

using test::Meeting;

#if defined(__SANITIZE_THREAD__) || SHARDREC_HAS_FEATURE(thread_sanitizer)
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

TEST(Threads, PiecesCoverEveryIndexOnceAndAreAtMostGrainLong) {
  for (const int count : {1, 2, 4}) {
    Threads threads(count);
    EXPECT_EQ(threads.count(), count);
    for (const int64_t size : {0, 1, 2, 7, 8, 9, 1000}) {
      for (const int64_t grain : {1, 3, 8, 999, 1000, 5000}) {
        std::vector<std::atomic<int>> visits(static_cast<size_t>(size));
        std::atomic<int64_t> longest{0};
        threads.parallel_for(size, grain, [&](int64_t begin, int64_t end) {
          int64_t before = longest.load();
          while (before < end - begin && !longest.compare_exchange_weak(before, end - begin)) {
          }
          for (int64_t i = begin; i < end; ++i) visits[static_cast<size_t>(i)].fetch_add(1);
        });
        for (const auto& visit : visits) ASSERT_EQ(visit.load(), 1) << size << " by " << grain;
        EXPECT_LE(longest.load(), grain);
        EXPECT_EQ(longest.load() > 0, size > 0);
      }
    }
  }
}

TEST(Threads, AsManyThreadsAsAskedForWorkAtOnceAlsoBeyondTheProcessors) {
  for (const int count : {1, 2, 4, 7}) {
    Threads threads(count);
    EXPECT_EQ(threads.most_seen(), 0);
    Meeting meeting(count);
    threads.parallel_for(count, 1, [&](int64_t, int64_t) { meeting.join(); });
    EXPECT_TRUE(meeting.complete());
    EXPECT_EQ(threads.most_seen(), count);
  }
}

TEST(Threads, TeamsOfSeveralRanksDoNotStarveEachOther) {
  constexpr int kRanks = 3;
  constexpr int kCount = 3;
  Meeting ready(kRanks);
  Meeting meeting(kRanks * kCount);
  std::atomic<int> seen{0};
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&] {
      Threads threads(kCount);
      ready.join();
      threads.parallel_for(kCount, 1, [&](int64_t, int64_t) { meeting.join(); });
      seen.fetch_add(threads.most_seen());
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_TRUE(meeting.complete());
  EXPECT_EQ(seen.load(), kRanks * kCount);
}

TEST(Threads, JoinMakesTheWorkersWritesVisible) {
  Threads threads(4);
  std::vector<int64_t> squares(4096);
  for (int64_t step = 1; step <= 200; ++step) {
    threads.parallel_for(4096, 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) squares[static_cast<size_t>(i)] += i * step;
    });
  }
  for (int64_t i = 0; i < 4096; ++i) ASSERT_EQ(squares[static_cast<size_t>(i)], i * 20100);
}

TEST(Threads, WorkersHaveEverySignalBlockedAndTheCallerKeepsItsMask) {
  constexpr int kCount = 3;
  Threads threads(kCount);
  Meeting meeting(kCount);
  const pthread_t caller = pthread_self();
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  std::atomic<int> workers{0};
  std::atomic<int> open{0};
  threads.parallel_for(kCount, 1, [&](int64_t, int64_t) {
    meeting.join();
    if (pthread_equal(pthread_self(), caller) != 0) return;
    workers.fetch_add(1);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    for (const int signal :
         {SIGINT, SIGTERM, SIGPIPE, SIGUSR1, SIGPROF, SIGCHLD, SIGALRM, SIGURG}) {
      if (sigismember(&mask, signal) == 0) open.fetch_add(1);
    }
  });
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(workers.load(), kCount - 1);
  EXPECT_EQ(open.load(), 0);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGUSR1}) {
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal));
  }
}

// In a process of its own, where the host is the first to use oneTBB.
TEST(ThreadsDeathTest, WorkersThatTheHostStartedGetTheirSignalsBlockedToo) {
  if (kThreadSanitizer) GTEST_SKIP() << "the sanitizer does not see the fork of the host's tasks";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto count_open = [](Threads* threads) {
    constexpr int kCount = 3;
    Meeting meeting(kCount);
    const pthread_t caller = pthread_self();
    std::atomic<int> open{0};
    const auto look = [&] {
      meeting.join();
      sigset_t mask;
      pthread_sigmask(SIG_SETMASK, nullptr, &mask);
      if (pthread_equal(pthread_self(), caller) == 0 && sigismember(&mask, SIGUSR1) == 0) ++open;
    };
    if (threads != nullptr) {
      threads->parallel_for(kCount, 1, [&](int64_t, int64_t) { look(); });
    } else {
      tbb::task_group host;
      for (int i = 0; i < kCount; ++i) host.run(look);
      host.wait();
    }
    return open.load();
  };
  EXPECT_EXIT(
      {
        const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, 3);
        tbb::task_arena arena(3);
        const int before = arena.execute([&] { return count_open(nullptr); });
        Threads threads(3);
        _exit(before == 2 && count_open(&threads) == 0 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Threads, SteadyStateAllocatesNothing) {
#if SHARDREC_COUNTS_ALLOCATIONS
  for (const int count : {1, 2, 4}) {
    Threads threads(count);
    std::atomic<int64_t> sum{0};
    const auto step = [&] {
      threads.parallel_for(1000, 10,
                           [&](int64_t begin, int64_t end) { sum.fetch_add(end - begin); });
    };
    for (int i = 0; i < 20; ++i) step();
    const int64_t before = allocations.load();
    for (int i = 0; i < 2000; ++i) step();
    EXPECT_EQ(allocations.load() - before, 0) << count << " threads";
    EXPECT_EQ(sum.load(), 2020 * 1000);
  }
#else
  GTEST_SKIP() << "the sanitizer owns malloc";
#endif
}

TEST(Threads, NothingIsWrittenToStderrWhenWiderThanTheMachine) {
  testing::internal::CaptureStderr();
  {
    Threads narrow(2);
    Threads wide(40);
    std::atomic<int64_t> sum{0};
    wide.parallel_for(1000, 1, [&](int64_t, int64_t) { sum.fetch_add(1); });
    EXPECT_EQ(sum.load(), 1000);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Threads, LimitSetByTheHostIsKeptAndTheWorkStillDone) {
  testing::internal::CaptureStderr();
  {
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, 1);
    Threads threads(4);
    std::atomic<int64_t> sum{0};
    threads.parallel_for(1000, 1, [&](int64_t, int64_t) { sum.fetch_add(1); });
    EXPECT_EQ(sum.load(), 1000);
    EXPECT_EQ(threads.most_seen(), 1);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Threads, HostThatCancelsItsTasksDoesNotCancelOurs) {
  Threads threads(4);
  std::atomic<int64_t> sum{0};
  tbb::task_group host;
  host.run_and_wait([&] {
    host.cancel();
    threads.parallel_for(1000, 1, [&](int64_t, int64_t) { sum.fetch_add(1); });
  });
  EXPECT_EQ(sum.load(), 1000);
}

#if defined(__SSE2__)
TEST(Threads, BodiesKeepSubnormalsWhereTheHostFlushesThem) {
  constexpr unsigned kFlushToZeroAndDenormalsAreZero = 0x8040;
  for (const int count : {1, 3}) {
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | kFlushToZeroAndDenormalsAreZero);
    Threads threads(count);
    Meeting meeting(count);
    std::vector<float> halves(static_cast<size_t>(count));
    const volatile float tiny = 1e-38F;
    threads.parallel_for(count, 1, [&](int64_t begin, int64_t) {
      meeting.join();
      halves[static_cast<size_t>(begin)] = tiny * 0.25F;
    });
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    EXPECT_NE(after & kFlushToZeroAndDenormalsAreZero, 0U) << "the host's mode comes back";
    for (const float half : halves) EXPECT_EQ(half, 0.25e-38F);
  }
}
#endif

TEST(Threads, DefaultWidthSharesTheProcessorsAmongRanks) {
  const int alone = default_thread_count(1);
  EXPECT_GE(alone, 1);
  EXPECT_EQ(default_thread_count(2), std::max(1, alone / 2));
  EXPECT_EQ(default_thread_count(1 << 20), 1);
}

}  // namespace
}  // namespace shardrec::core
