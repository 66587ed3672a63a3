// The handler of SIGINT: it sets a flag, and ends the process when the flag is set.
#include "command/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace shardrec::cli {
namespace {

std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void on_interrupt(int) {
  if (stop_requested.exchange(true)) _exit(kInterruptedExit);
}

}  // namespace

void handle_interrupts() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() { return stop_requested.load(std::memory_order_relaxed); }

}  // namespace shardrec::cli
