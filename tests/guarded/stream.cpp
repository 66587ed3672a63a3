#include "guarded/stream.h"

#include <system_error>
#include <utility>

#include "core/error.h"

namespace shardrec::test {

Stream::Stream(std::shared_ptr<GuardedMemory> memory) : memory_(std::move(memory)) {
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    core::fail(SHARDREC_OUT_OF_MEMORY, "cannot start the thread of a stream");
  }
}

Stream::~Stream() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Stream::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return busy_ || ends_; });
    if (!busy_) return;
    run_all();
    busy_ = false;
    changed_.notify_all();
  }
}

void Stream::run_all() noexcept {
  memory_->open();
  try {
    for (const auto& operation : waiting_) operation();
  } catch (...) {
    failure_ = std::current_exception();
  }
  waiting_.clear();
  memory_->close();
}

void Stream::finish() noexcept {
  if (waiting_.empty()) return;
  std::unique_lock lock(mutex_);
  busy_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !busy_; });
}

void Stream::wait() {
  finish();
  if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
}

}  // namespace shardrec::test
