#include "compute/probe/team.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <thread>

namespace shardrec::compute::probe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kClosed = int64_t{1} << 32;
constexpr int64_t kOver = -1;

int64_t ticks() noexcept { return Clock::now().time_since_epoch().count(); }

// Spins; after about a tenth of a millisecond lets others run in between, who may be the awaited
// ones.
class Waiting {
 public:
  void step() noexcept {
    constexpr int kSpins = 2000;
    if (++steps_ > kSpins) {
      std::this_thread::yield();
      return;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

 private:
  int64_t steps_ = 0;
};

// Keeps this thread on one processor for a scope, the part-th of those it may use: beside other
// work, schedulers else let two threads of a team share a processor for a while. Not where there
// are more threads than processors.
class Pinned {
 public:
  Pinned(int64_t part, int64_t parts) noexcept {
    if (parts == 1 || sched_getaffinity(0, sizeof(before_), &before_) != 0) return;
    if (CPU_COUNT(&before_) < parts) return;
    int processor = 0;
    for (int64_t skipped = 0; !CPU_ISSET(processor, &before_) || skipped++ < part;) ++processor;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(processor, &own);
    pinned_ = sched_setaffinity(0, sizeof(own), &own) == 0;
  }
  ~Pinned() {
    if (pinned_) sched_setaffinity(0, sizeof(before_), &before_);
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  cpu_set_t before_;
  bool pinned_ = false;
};

}  // namespace

double ProbeTeam::run(const Work& work) noexcept {
  work_ = &work;
  ended_.store(0);
  first_.store(std::numeric_limits<int64_t>::max());
  last_.store(0);
  calls_.fetch_add(1);
  take_part(work, 0);
  for (Waiting waiting; ended_.load() < count_;) waiting.step();
  const Clock::duration taken(last_.load() - first_.load());
  return std::max(std::chrono::duration<double>(taken).count(), 1e-9);
}

void ProbeTeam::take_part(const Work& work, int64_t part) noexcept {
  const int64_t start = ticks();
  int64_t seen = first_.load();
  while (start < seen && !first_.compare_exchange_weak(seen, start)) {
  }
  work(part);
  const int64_t end = ticks();
  seen = last_.load();
  while (end > seen && !last_.compare_exchange_weak(seen, end)) {
  }
  ended_.fetch_add(1);
}

bool ProbeTeam::enlist(int64_t& part) noexcept {
  const int64_t before = enlisted_.fetch_add(1);
  part = before + 1;
  return before < kClosed;
}

void ProbeTeam::follow() noexcept {
  int64_t part = 0;
  if (!enlist(part)) return;
  int64_t done = 0;
  Waiting waiting;
  for (;;) {
    const int64_t calls = calls_.load();
    if (calls == kOver) return;
    if (calls == done) {
      waiting.step();
      continue;
    }
    done = calls;
    take_part(*work_, part);
    waiting = {};
  }
}

void ProbeTeam::gather_followers(int64_t most) noexcept {
  const auto deadline = Clock::now() + std::chrono::milliseconds(100);
  for (Waiting waiting; enlisted_.load() < most && Clock::now() < deadline;) waiting.step();
  count_ = 1 + enlisted_.fetch_add(kClosed);
}

void lead_team(core::Threads& threads, core::FunctionRef<void(ProbeTeam&)> lead) {
  ProbeTeam team;
  std::exception_ptr failure;
  threads.parallel_for(threads.count(), 1, [&](int64_t part, int64_t) {
    const Pinned pinned(part, threads.count());
    if (part != 0) {
      team.follow();
      return;
    }
    team.gather_followers(threads.count() - 1);
    try {
      lead(team);
    } catch (...) {
      failure = std::current_exception();
    }
    team.calls_.store(kOver);
  });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace shardrec::compute::probe
