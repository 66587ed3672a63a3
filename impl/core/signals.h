// Threads of the library take no signals: they are started while the thread that starts them blocks
// all signals, and inherit its mask.
#pragma once

#include <csignal>

namespace shardrec::core {

// Blocks every signal of this thread; returns the mask before.
inline sigset_t block_signals() noexcept {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  return before;
}

// Blocks every signal of this thread for a scope.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept : before_(block_signals()) {}
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace shardrec::core
