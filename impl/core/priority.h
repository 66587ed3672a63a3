// A thread that lets others go first.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace shardrec::core {

// The calling thread takes the processors that others leave: ten steps of "nice" behind where it was. Where the
// system refuses, it stays where it is.
inline void yield_to_others() noexcept {
  const auto thread = static_cast<id_t>(::gettid());  // in Linux, a thread has its own
  constexpr int kSteps = 10;
  constexpr int kLast = 19;
  (void)::setpriority(PRIO_PROCESS, thread,
                      std::min(::getpriority(PRIO_PROCESS, thread) + kSteps, kLast));
}

}  // namespace shardrec::core
