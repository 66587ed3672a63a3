// A signal that a system call may raise in the calling thread (SIGPIPE by a write to a connection
// that is gone, SIGXFSZ by one beyond the limit of a file's size), and whose default ends the host.
// While one of these lives in a thread, that signal neither does so nor stays pending: the call
// returns its error instead.
#pragma once

#include <pthread.h>

#include <csignal>
#include <ctime>

namespace shardrec::core {

class HeldSignal {
 public:
  explicit HeldSignal(int signal) noexcept {
    sigemptyset(&set_);
    sigaddset(&set_, signal);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, signal) == 1;
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~HeldSignal() {
    const timespec now{};
    if (!was_pending_) sigtimedwait(&set_, nullptr, &now);  // takes the one raised meanwhile
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  HeldSignal(const HeldSignal&) = delete;
  HeldSignal& operator=(const HeldSignal&) = delete;

 private:
  sigset_t set_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace shardrec::core
