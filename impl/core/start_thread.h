// How the library starts threads: with all signals blocked, and with OUT_OF_MEMORY, which names
// the limits, where the system refuses one.
#pragma once

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/host.h"
#include "core/signals.h"

namespace shardrec::core {

// Throws OUT_OF_MEMORY naming the limits that there are on threads; reason: of the system.
[[noreturn]] inline void refuse_thread(const std::string& reason) {
  const std::string limits = thread_limits();
  fail(SHARDREC_OUT_OF_MEMORY, sentence("the system starts no more threads for this process: ",
                                        reason, limits.empty() ? "" : "; ", limits));
}

// Throws OUT_OF_MEMORY.
template <class Function>
std::thread start_thread(Function&& function) {
  const SignalsBlocked blocked;
  try {
    return std::thread(std::forward<Function>(function));
  } catch (const std::system_error& error) {
    refuse_thread(error.code().message());
  }
}

}  // namespace shardrec::core
