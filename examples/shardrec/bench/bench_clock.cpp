// A steady clock and the processor time of the process.
#include "bench/bench_clock.h"

#include <time.h>

#include <chrono>

namespace shardrec::cli {

double bench_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double bench_cpu() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace shardrec::cli
