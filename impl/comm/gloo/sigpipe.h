// Gloo writes with writev, which raises SIGPIPE in the writing thread when the peer is gone. While
// one of these lives in a host's thread, that signal neither kills the host nor stays pending.
#pragma once

#include <pthread.h>

#include <csignal>
#include <ctime>

namespace shardrec::comm::gloo_plugin {

class SigpipeHeld {
 public:
  SigpipeHeld() noexcept {
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    const sigset_t sigpipe = only_sigpipe();
    pthread_sigmask(SIG_BLOCK, &sigpipe, &before_);
  }
  ~SigpipeHeld() {
    const sigset_t sigpipe = only_sigpipe();
    const timespec now{};
    if (!was_pending_) sigtimedwait(&sigpipe, nullptr, &now);  // takes the one raised meanwhile
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeHeld(const SigpipeHeld&) = delete;
  SigpipeHeld& operator=(const SigpipeHeld&) = delete;

 private:
  static sigset_t only_sigpipe() noexcept {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    return set;
  }

  sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace shardrec::comm::gloo_plugin
