#include "comm/thread_share.h"

#include <algorithm>
#include <mutex>

#include "core/threads.h"

namespace shardrec::comm {
namespace {

std::mutex mutex;
int living = 0;
int least_threads = 0;

}  // namespace

ThreadShare::ThreadShare(int threads) noexcept {
  const std::lock_guard lock(mutex);
  least_threads = living == 0 ? threads : std::min(least_threads, threads);
  ++living;
}

ThreadShare::~ThreadShare() {
  const std::lock_guard lock(mutex);
  --living;
}

int ThreadShare::least() {
  const std::lock_guard lock(mutex);
  return living == 0 ? core::default_thread_count(1) : least_threads;
}

}  // namespace shardrec::comm
