#include "core/worker.h"

#include <utility>

#include "core/start_thread.h"
#include "core/wait.h"

namespace shardrec::core {

Worker::~Worker() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Worker::start(std::function<void()> work) {
  if (!thread_.joinable()) thread_ = start_thread([this] { run(); });
  {
    const std::lock_guard lock(mutex_);
    error_ = nullptr;
    work_ = std::move(work);
  }
  changed_.notify_all();
}

void Worker::wait() {
  std::unique_lock lock(mutex_);
  core::wait(changed_, lock, [&] { return work_ == nullptr; });
  if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Worker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    core::wait(changed_, lock, [&] { return work_ != nullptr || ends_; });
    if (work_ == nullptr) return;
    lock.unlock();
    std::exception_ptr error;
    try {
      work_();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    error_ = std::move(error);
    work_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace shardrec::core
