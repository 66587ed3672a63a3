#include "core/threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>
#include <tbb/task_scheduler_observer.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

// The thread sanitizer's own annotations; absent in programs built without it. oneTBB is not
// instrumented, so fork and join are invisible to the sanitizer unless they are told here.
extern "C" {
__attribute__((weak)) void __tsan_acquire(void* address);
__attribute__((weak)) void __tsan_release(void* address);
}

namespace shardrec::core {
namespace {

void acquire(void* address) noexcept {
  if (__tsan_acquire != nullptr) __tsan_acquire(address);
}

void release(void* address) noexcept {
  if (__tsan_release != nullptr) __tsan_release(address);
}

// Blocks every signal of this thread for a scope: threads that oneTBB starts meanwhile inherit
// that.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// Workers may have been started by another user of oneTBB in this process: block their signals when
// they first come here. They keep them blocked.
class WorkerSignals final : public tbb::task_scheduler_observer {
 public:
  explicit WorkerSignals(tbb::task_arena& arena) : tbb::task_scheduler_observer(arena) {
    observe(true);
  }
  ~WorkerSignals() override { observe(false); }
  void on_scheduler_entry(bool is_worker) override {
    if (!is_worker) return;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
  }
};

// oneTBB has one pool of workers per process, by default one less than the processors. Ranks that
// share a process need the sum of their workers, or the arena of one would starve that of another.
// The limit is a process-wide setting of which the smallest live value holds, so exactly one is
// kept here, and only while the sum exceeds the default.
class WorkerLimit {
 public:
  static WorkerLimit& instance() {
    static WorkerLimit* const leaked =
        std::make_unique<WorkerLimit>().release();  // nothing runs at exit
    return *leaked;
  }

  void add(int workers) {
    const std::lock_guard lock(mutex_);
    workers_ += workers;
    apply();
  }
  void remove(int workers) {
    const std::lock_guard lock(mutex_);
    workers_ -= workers;
    apply();
  }

 private:
  void apply() {
    constexpr int64_t kMost =
        256;  // oneTBB's own limit on small machines; beyond it, it warns on stderr
    const int64_t processors = tbb::info::default_concurrency();
    const int64_t wanted = std::min(workers_ + 1, std::max(kMost, processors));
    const int64_t limit = wanted > processors ? wanted : 0;
    if (limit == limit_) return;
    std::unique_ptr<tbb::global_control> next;
    if (limit != 0) {
      next = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                                   static_cast<size_t>(limit));
    }
    control_ = std::move(next);  // the old one ends after the new one began
    limit_ = limit;
  }

  std::mutex mutex_;
  int64_t workers_ = 0;
  int64_t limit_ = 0;  // 0: oneTBB's default
  std::unique_ptr<tbb::global_control> control_;
};

// How many task objects oneTBB has made for this thread so far, at least.
thread_local int reserved_tasks = 0;

}  // namespace

struct Threads::Arena {
  explicit Arena(int count)
      : arena(count, 1),
        signals(arena),
        context(tbb::task_group_context::isolated),
        helpers(context) {}

  void start_job(int64_t job_size, int64_t job_grain,
                 const FunctionRef<void(int64_t, int64_t)>& job_body) noexcept {
    body = &job_body;
    size = job_size;
    grain = job_grain;
    next.store(0, std::memory_order_relaxed);
  }

  // Takes pieces until none is left.
  void work() noexcept {
    int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
    if (begin >= size) return;
    const int inside_now = inside.fetch_add(1, std::memory_order_relaxed) + 1;
    int seen = most_seen.load(std::memory_order_relaxed);
    while (seen < inside_now && !most_seen.compare_exchange_weak(seen, inside_now)) {
    }
    do {
      (*body)(begin, std::min(begin + grain, size));
      begin = next.fetch_add(grain, std::memory_order_relaxed);
    } while (begin < size);
    inside.fetch_sub(1, std::memory_order_relaxed);
  }

  // Starts up to `count` helpers; fewer when memory is short, which costs time only.
  void start_helpers(int count) noexcept {
    const SignalsBlocked blocked;
    try {
      for (int i = 0; i < count; ++i) {
        helpers.run([this] {
          acquire(&fork);
          work();
          release(&join);
        });
      }
    } catch (const std::bad_alloc&) {
    }
  }

  // oneTBB keeps task objects per spawning thread and reuses them; one may come back a moment after
  // wait() returned. Twice the number in use, made once per thread, keeps later calls free of
  // allocations.
  void reserve(int count) noexcept {
    if (reserved_tasks >= 2 * count) return;
    size = 0;
    start_helpers(2 * count);
    helpers.wait();
    reserved_tasks = 2 * count;
  }

  tbb::task_arena arena;
  WorkerSignals signals;
  tbb::task_group_context
      context;  // isolated: a host that cancels its own tasks does not cancel ours
  tbb::task_group helpers;

  // The job in progress.
  const FunctionRef<void(int64_t, int64_t)>* body = nullptr;
  int64_t size = 0;
  int64_t grain = 1;
  std::atomic<int64_t> next{0};

  std::atomic<int> inside{0};
  std::atomic<int> most_seen{0};
  char fork = 0;  // addresses that stand for fork and join
  char join = 0;
};

Threads::Threads(int count) : count_(std::max(count, 1)), arena_(std::make_unique<Arena>(count_)) {
  if (count_ == 1) return;
  WorkerLimit::instance().add(count_ - 1);
  // Meet once, so that the workers exist before the first step. Bounded: the host may allow fewer.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  const size_t allowed =
      tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  const int expected = static_cast<int>(std::min(static_cast<size_t>(count_), allowed));
  std::atomic<int> arrived{0};
  parallel_for(count_, 1, [&](int64_t, int64_t) {
    arrived.fetch_add(1);
    while (arrived.load() < expected && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
  });
  arena_->most_seen.store(0);
}

Threads::~Threads() {
  if (count_ > 1) WorkerLimit::instance().remove(count_ - 1);
}

void Threads::parallel_for(int64_t size, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
  if (size <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t pieces = (size - 1) / grain + 1;
  const int helpers = static_cast<int>(std::min<int64_t>(count_, pieces)) - 1;
  if (helpers == 0) {
    arena_->start_job(size, grain, body);
    arena_->work();
    return;
  }
  arena_->arena.execute([&] {
    arena_->reserve(count_);
    arena_->start_job(size, grain, body);
    release(&arena_->fork);
    arena_->start_helpers(helpers);
    arena_->work();
    arena_->helpers.wait();
    acquire(&arena_->join);
  });
}

int Threads::most_seen() const noexcept {
  return arena_->most_seen.load(std::memory_order_relaxed);
}

int default_thread_count(int ranks) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  int processors = 0;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) processors = CPU_COUNT(&allowed);
  if (processors == 0) processors = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, processors / std::max(ranks, 1));
}

}  // namespace shardrec::core
