#include "core/threads.h"

#include <pthread.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <thread>
#include <vector>

#include "core/float_mode.h"
#include "core/host.h"
#include "core/signals.h"
#include "core/start_thread.h"

// The thread sanitizer's own annotations: oneTBB is not instrumented, so fork and join are
// invisible to the sanitizer unless they are told here. Not weak references in every build: other
// programs carry these names too (Go's race detector), and their run-time does not know our
// threads.
#ifdef SHARDREC_THREAD_SANITIZER
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif

namespace shardrec::core {
namespace {

#ifdef SHARDREC_THREAD_SANITIZER
constexpr bool kThreadSanitizer = true;
void acquire(void* address) noexcept { __tsan_acquire(address); }
void release(void* address) noexcept { __tsan_release(address); }
#else
constexpr bool kThreadSanitizer = false;
void acquire(void* /*address*/) noexcept {}
void release(void* /*address*/) noexcept {}
#endif

// oneTBB has one pool of workers per process, by default one less than the processors. Ranks that
// share a process need the sum of their workers, or the arena of one would starve that of another.
// The limit is a process-wide setting, made once, when the sum first exceeds the default, and kept:
// oneTBB may need memory to take one back, and ends the process where there is none. How many
// threads work is up to the arenas.
class WorkerLimit {
 public:
  static WorkerLimit& instance() {
    static WorkerLimit* const leaked = [] {
      WorkerLimit* const made = std::make_unique<WorkerLimit>().release();  // nothing runs at exit
      release(made);
      return made;
    }();
    acquire(leaked);  // the compiler's own check, in this file, is invisible to the sanitizer too
    return *leaked;
  }

  // Returns how many threads oneTBB may use in all from now on. Throws OUT_OF_MEMORY where the
  // system would not start them.
  int64_t add(int workers) {
    const std::lock_guard lock(mutex_);
    start_and_end(workers_ + workers - most_workers_);
    workers_ += workers;
    most_workers_ = std::max(most_workers_, workers_);
    raise_limit();
    return static_cast<int64_t>(
        tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism));
  }
  void remove(int workers) noexcept {
    const std::lock_guard lock(mutex_);
    workers_ -= workers;
  }

 private:
  // Has `count` threads at once, which do nothing. oneTBB cannot say that the system starts none:
  // it throws in the midst of its work, or works with fewer.
  static void start_and_end(int64_t count) {
    struct Started {
      ~Started() {
        for (std::thread& thread : threads) thread.join();
      }
      std::vector<std::thread> threads;
    };
    std::mutex gate;
    Started started;
    started.threads.reserve(static_cast<size_t>(std::max<int64_t>(count, 0)));
    const std::lock_guard closed(gate);
    while (std::ssize(started.threads) < count) {
      started.threads.push_back(start_thread([&gate] { const std::lock_guard wait(gate); }));
    }
  }

  void raise_limit() {
    constexpr int64_t kMost =
        256;  // oneTBB's own limit on small machines; beyond it, it warns on stderr
    const int64_t processors = tbb::info::default_concurrency();
    if (control_ != nullptr || workers_ + 1 <= processors) return;
    control_ =
        std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                              static_cast<size_t>(std::max(kMost, processors)));
  }

  // oneTBB frees its tables when its last worker ends, in an order that only it knows. Where the
  // thread sanitizer watches, they stay.
  tbb::task_scheduler_handle kept_ =
      kThreadSanitizer ? tbb::task_scheduler_handle{tbb::attach{}} : tbb::task_scheduler_handle{};
  std::mutex mutex_;
  int64_t workers_ = 0;
  int64_t most_workers_ = 0;  // at once so far: oneTBB keeps the threads that it has started
  std::unique_ptr<tbb::global_control> control_;
};

// The workers of one arena, counted in for its lifetime. Before the arena exists: oneTBB writes a
// warning to stderr when an arena is wider than the limit.
class Workers {
 public:
  explicit Workers(int count)
      : count_(count),
        allowed_(
            static_cast<int>(std::min<int64_t>(count, WorkerLimit::instance().add(count) - 1))) {}
  ~Workers() { WorkerLimit::instance().remove(count_); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Fewer than asked for where the host has set a lower limit.
  int allowed() const noexcept { return allowed_; }

 private:
  int count_;
  int allowed_;
};

// One parallel_for. Each thread has a lane, an equal part of the pieces, and takes what is left in
// the lanes of others when its own is empty. So what one parallel_for has written in a cache is
// mostly read from there by the next one that is cut alike.
class Job {
 public:
  explicit Job(int lanes) : lanes_(static_cast<size_t>(lanes)) {}

  void start(int64_t size, int64_t grain,
             const FunctionRef<void(int64_t, int64_t)>& body) noexcept {
    body_ = &body;
    size_ = size;
    grain_ = grain;
    const int64_t pieces = (size - 1) / grain + 1;
    const auto lanes = static_cast<int64_t>(lanes_.size());
    const int64_t part = pieces / lanes;
    const int64_t longer = pieces % lanes;  // so many lanes have one piece more
    int64_t piece = 0;
    for (int64_t i = 0; i < lanes; ++i) {
      Lane& lane = lanes_[static_cast<size_t>(i)];
      lane.next.store(piece, std::memory_order_relaxed);
      piece += part + (i < longer ? 1 : 0);
      lane.end = piece;
    }
  }

  // On the thread with this lane.
  void work(int lane) noexcept {
    const size_t lanes = lanes_.size();
    const auto own = static_cast<size_t>(lane) % lanes;
    size_t visited = 0;
    int64_t piece = take(own, visited);
    if (piece < 0) return;
    const DefaultFloatMode mode;
    enter();
    do {
      const int64_t begin = piece * grain_;
      (*body_)(begin, begin + std::min(grain_, size_ - begin));
      piece = take(own, visited);
    } while (piece >= 0);
    inside_.fetch_sub(1, std::memory_order_relaxed);
  }

  int most_seen() const noexcept { return most_seen_.load(std::memory_order_relaxed); }
  void forget_seen() noexcept { most_seen_.store(0, std::memory_order_relaxed); }

 private:
  struct alignas(64) Lane {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  // A piece of lane `own`, or of the first one behind it that has any; visited: how many lanes are
  // known to be empty. -1: none is left.
  int64_t take(size_t own, size_t& visited) noexcept {
    for (; visited < lanes_.size(); ++visited) {
      Lane& lane = lanes_[(own + visited) % lanes_.size()];
      if (lane.next.load(std::memory_order_relaxed) >= lane.end) continue;
      const int64_t piece = lane.next.fetch_add(1, std::memory_order_relaxed);
      if (piece < lane.end) return piece;
    }
    return -1;
  }

  void enter() noexcept {
    const int inside = inside_.fetch_add(1, std::memory_order_relaxed) + 1;
    int seen = most_seen_.load(std::memory_order_relaxed);
    while (seen < inside && !most_seen_.compare_exchange_weak(seen, inside)) {
    }
  }

  const FunctionRef<void(int64_t, int64_t)>* body_ = nullptr;
  int64_t size_ = 0;
  int64_t grain_ = 1;
  std::vector<Lane> lanes_;
  std::atomic<int> inside_{0};
  std::atomic<int> most_seen_{0};
};

// This thread works for oneTBB and has had its signals blocked. Another user of oneTBB in this
// process may have started it.
thread_local bool worker_signals_blocked = false;

// How many task objects oneTBB has made for this thread so far, at least.
thread_local int reserved_tasks = 0;

// The calling thread and `workers` helpers of it.
class Team {
 public:
  explicit Team(int workers)
      : workers_(workers),
        arena_(1 + workers_.allowed(), 1),
        context_(tbb::task_group_context::isolated),
        helpers_(context_) {}

  int width() const noexcept { return 1 + workers_.allowed(); }

  // Has at most `helpers` of the team work on the job beside the caller; returns when it is done.
  void run(Job& job, int helpers) {
    arena_.execute([&] {
      caller_ = pthread_self();
      reserve(2 * workers_.allowed());
      release(&fork_);
      start(helpers, &job);
      job.work(0);
      helpers_.wait();
      acquire(&join_);
    });
  }

 private:
  // Starts `count` tasks, fewer when memory or threads are short: that costs time only. job null: idle tasks.
  void start(int count, Job* job) noexcept {
    const SignalsBlocked blocked;
    try {
      for (int i = 0; i < count; ++i) {
        helpers_.run([this, job] {
          if (job == nullptr) return;
          if (!worker_signals_blocked && pthread_equal(pthread_self(), caller_) == 0) {
            block_signals();
            worker_signals_blocked = true;
          }
          acquire(&fork_);
          job->work(tbb::this_task_arena::current_thread_index());
          release(&join_);
        });
      }
    } catch (const std::exception&) {  // no memory, or no thread
    }
  }

  // oneTBB keeps task objects per spawning thread and reuses them; each worker may return one a
  // moment after wait() returned. Twice the number of workers, made once per thread, keeps later
  // calls free of allocations.
  void reserve(int tasks) noexcept {
    if (reserved_tasks >= tasks) return;
    start(tasks, nullptr);
    helpers_.wait();
    reserved_tasks = tasks;
  }

  Workers workers_;
  tbb::task_arena arena_;
  tbb::task_group_context context_;  // isolated: a host that cancels its tasks does not cancel ours
  tbb::task_group helpers_;
  pthread_t caller_{};  // takes tasks too while it waits
  char fork_ = 0;       // addresses that stand for fork and join
  char join_ = 0;
};

}  // namespace

struct Threads::Arena {
  explicit Arena(int lanes) : job(lanes) {}

  Job job;
  std::unique_ptr<Team> team;  // null: one thread
};

Threads::Threads(int count) : count_(std::max(count, 1)), arena_(std::make_unique<Arena>(count_)) {
  if (count_ == 1) return;
  arena_->team = std::make_unique<Team>(count_ - 1);
  // Meet once, so that the workers exist before the first step. Bounded: they may be busy
  // elsewhere.
  const int width = arena_->team->width();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  std::atomic<int> arrived{0};
  parallel_for(width, 1, [&](int64_t, int64_t) {
    arrived.fetch_add(1);
    while (arrived.load() < width && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
  });
  arena_->job.forget_seen();
}

Threads::~Threads() = default;

void Threads::parallel_for(int64_t size, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
  if (size <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t pieces = (size - 1) / grain + 1;
  Job& job = arena_->job;
  job.start(size, grain, body);
  if (count_ == 1 || pieces == 1) {
    job.work(0);
  } else {
    arena_->team->run(job, static_cast<int>(std::min<int64_t>(arena_->team->width(), pieces)) - 1);
  }
}

int Threads::most_seen() const noexcept { return arena_->job.most_seen(); }

int default_thread_count(int ranks) {
  const ProcessorLimits limits = processor_limits();
  return std::max(1, processor_share(std::span(&limits, 1), 0) / std::max(ranks, 1));
}

}  // namespace shardrec::core
