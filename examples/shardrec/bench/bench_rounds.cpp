// Steps for a time, or for rounds that standard input asks for.
#include "bench/bench_rounds.h"

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>

#include "bench/bench_clock.h"
#include "command/machine.h"
#include "command/numbers.h"
#include "command/progress_line.h"
#include "command/user_error.h"

namespace shardrec::cli {
namespace {

constexpr int64_t kLeastSteps = 5;

// The next round that the input asks for; none at its end.
std::optional<int64_t> read_round() {
  std::string line;
  if (!std::getline(std::cin, line)) return std::nullopt;
  const auto steps = parse_integer(line);
  if (!steps || *steps < 1 || *steps > 1000000) {
    throw UserError("--serve read '" + line + "'; accepted: a number of steps, a line each.");
  }
  return steps;
}

// What rank 0 says, where the others say 0: whether or how far to go on.
int64_t agree(Comm& comm, int64_t value) {
  comm.all_reduce(Vector(&value, 1), SHARDREC_REDUCTION_MAX);
  return value;
}

}  // namespace

void run_bench_seconds(Comm& comm, int rank, double seconds, const std::function<void()>& step) {
  const double begin = bench_now();
  const double end = begin + seconds;
  ProgressLine progress("measuring", rank == 0);
  int64_t steps = 0;
  do {
    step();
    ++steps;
    if (seconds > 0) progress.show((bench_now() - begin) / seconds);
  } while (agree(comm, rank == 0 && (bench_now() < end || steps < kLeastSteps)));
}

void serve_bench_rounds(Comm& comm, int rank, const std::function<void(int64_t steps)>& round) {
  constexpr double kForever = 1e9;
  comm.set(SHARDREC_COMM_STEP_SECONDS, kForever);
  comm.set(SHARDREC_COMM_WARN_SECONDS, kForever);
  comm.barrier();
  if (rank == 0) std::cout << "ready\n" << std::flush;
  while (const int64_t steps = agree(comm, rank == 0 ? read_round().value_or(0) : 0)) round(steps);
}

int bench_threads(int ranks) { return std::max(1, usable_processors() / ranks); }

}  // namespace shardrec::cli
