// A refresh that is under way when the thread is to end is cancelled.
#include "serve/refresher.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "bench/bench_clock.h"

namespace shardrec::cli {

Refresher::Refresher(Scorer& scorer, double every) : scorer_(scorer) {
  if (every > 0) thread_ = std::thread([this, every] { refresh_until_stopped(every); });
}

Refresher::~Refresher() { join(); }

Refresher::Counts Refresher::stop() {
  join();
  if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
  return counts_;
}

void Refresher::join() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  stopping_.notify_all();
  control_.cancel();
  thread_.join();
}

void Refresher::refresh_until_stopped(double every) {
  int64_t step = scorer_.info().step;
  std::unique_lock lock(mutex_);
  const auto pause = std::chrono::duration<double>(every);
  while (!stopping_.wait_for(lock, pause, [this] { return stop_; })) {
    lock.unlock();
    const double start = bench_now();
    try {
      const int64_t served = scorer_.refresh(-1, &control_);
      ++counts_.refreshes;
      if (served != step) ++counts_.swaps;
      step = served;
      counts_.longest = std::max(counts_.longest, bench_now() - start);
    } catch (...) {
      lock.lock();
      if (!stop_) failure_ = std::current_exception();  // else: cancelled by stop()
      return;
    }
    lock.lock();
  }
}

}  // namespace shardrec::cli
