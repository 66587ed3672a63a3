// For tests in a process of their own: the system starts no more threads for it.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

namespace shardrec::test {

// Nothing that needs a privilege is left to do: root is not held to RLIMIT_NPROC.
inline bool may_start_no_thread() {
  constexpr unsigned kNobody = 65534;
  if (geteuid() == 0 && (setgid(kNobody) != 0 || setuid(kNobody) != 0)) return false;
  const rlimit none{.rlim_cur = 1, .rlim_max = 1};
  return setrlimit(RLIMIT_NPROC, &none) == 0;
}

}  // namespace shardrec::test
