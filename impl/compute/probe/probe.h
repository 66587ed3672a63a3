// Measures what this machine's memory does (compute/profile/memory_profile.h): for one thread and for
// several, copies, gathers and updates of random rows by row size, each with all prefetches and
// distances roughly, then with the best ones finely; and by which prefetch the library's own
// kernels are fastest. Takes under three seconds and up to two GiB of memory, and is worth
// something only while nothing else uses the machine.
#pragma once

#include <chrono>
#include <cstdint>

#include "compute/profile/memory_profile.h"
#include "core/control.h"

namespace shardrec::compute::probe {

// Sizes in bytes. With small ones, as tests use them, it is caches that are measured.
struct ProbeSizes {
  // As large as real tables, at most: a quarter of it is gathered from faster by a third where
  // addresses are translated twice, as in virtual machines. Memory that comes slowly, as there at
  // first, is waited for no longer than touch_time once there are least_table bytes.
  int64_t table = int64_t{2048} << 20;
  int64_t least_table = int64_t{512} << 20;
  std::chrono::milliseconds touch_time = std::chrono::milliseconds(150);
  int64_t outputs = int64_t{64} << 20;  // written in turn
  int64_t least_outputs = outputs;      // waited for as least_table is
  // Rows that ids of gathers in turn name: so many that none is in a cache when it comes again.
  int64_t gathered = int64_t{128} << 20;
  int64_t rough = int64_t{8} << 20;  // rows of one measurement: at most a quarter of outputs
  int64_t fine = int64_t{16} << 20;
  // Of one fine measurement of updates, at most a pass over the table: more than the caches keep of
  // what is written, or the writing is not seen.
  int64_t updates = int64_t{64} << 20;
  int fine_rounds = 6;  // at most
  // Of all. Where memory comes so slowly that it is not enough, stages have less than the
  // following.
  std::chrono::milliseconds time = std::chrono::milliseconds(2500);
  // Of each stage, for each number of threads: no further measurement begins after it. Where others
  // use the machine, some ways are then seen once or not at all.
  std::chrono::milliseconds rough_time = std::chrono::milliseconds(300);
  std::chrono::milliseconds fine_time = std::chrono::milliseconds(350);
  // Of the library's kernels, with one thread.
  std::chrono::milliseconds kernels_time = std::chrono::milliseconds(300);
  std::chrono::milliseconds small_pages_time = std::chrono::milliseconds(100);
};

// For this machine's caches and memory, and that many threads.
ProbeSizes probe_sizes(const Machine& machine, int threads);

// Shortens the stages' times, to a quarter at most, to what is left of the whole time when the
// memory, `spent` after the start, is there.
void keep_to_time(ProbeSizes& sizes, std::chrono::duration<double> spent, int64_t threads);

// With one thread and with `threads`. control may be null; throws CANCELLED, OUT_OF_MEMORY.
MemoryProfile probe_memory(int threads, core::Control* control, ProbeSizes sizes);

// probe_memory() in sizes for this machine, then keep_profile(). threads: 0 takes as many as one rank
// of this machine has by default. Throws BUSY while another thread of the process is in this call,
// whose measurement it would disturb.
MemoryProfile probe_this_machine(int threads, core::Control* control);

}  // namespace shardrec::compute::probe
