// What one rank of a benchmark has measured; as numbers, for the rank that prints.
#pragma once

#include <vector>

#include "bench/bench_tables.h"
#include "bench/device_calls.h"

namespace shardrec::cli {

struct RankTimes {
  std::vector<StepTimes> steps;
  double create = 0;                // seconds
  double destroy = 0;               // seconds; 0 while the tables are in use
  std::vector<double> ids;          // per table: BenchRank::ids
  std::vector<double> unique_rows;  // per table
  DeviceCalls calls;                // of this rank's process, during the steps
};

std::vector<double> numbers_of(const RankTimes& times);
RankTimes times_from(const std::vector<double>& numbers, size_t tables);

// Ranks in processes of their own: the processor time and the calls of all are counted as the first rank's, as they
// are where they share a process.
void add_up_processes(std::vector<RankTimes>& ranks);

}  // namespace shardrec::cli
