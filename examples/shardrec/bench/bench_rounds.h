// Which steps the ranks of a benchmark run together: those of a time, or those of the rounds that
// the input asks for. Rank 0 decides; all calls are collective.
#pragma once

#include <cstdint>
#include <functional>
#include <shardrec/shardrec.hpp>

namespace shardrec::cli {

inline constexpr int64_t kBenchWarmUp = 2;  // steps before those that are measured

// Calls step() for so long, and five times at least; as often on every rank.
void run_bench_seconds(Comm& comm, int rank, double seconds, const std::function<void()>& step);

// Prints "ready", then for each line of the input, a number of steps, calls round(steps) on all
// ranks, of which rank 0 prints a line. The ranks wait for the input without a deadline.
void serve_bench_rounds(Comm& comm, int rank, const std::function<void(int64_t steps)>& round);

// Threads of each rank where the command line names none: its part of usable_processors(). Not collective.
int bench_threads(int ranks);

}  // namespace shardrec::cli
