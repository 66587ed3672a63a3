// What `bench` found: one line of JSON.
#pragma once

#include <string>
#include <vector>

#include "bench_limit.h"
#include "bench_options.h"
#include "bench_tables.h"

namespace shardrec::cli {

struct RankTimes {
  std::vector<StepTimes> steps;
  double create = 0;                // seconds
  double destroy = 0;               // seconds; 0 while the tables are in use
  std::vector<double> ids;          // per table: BenchRank::ids
  std::vector<double> unique_rows;  // per table
};

// ranks: at least one, with as many steps each, at least one. probed: null where there is none.
std::string bench_report(const BenchOptions& options, const std::vector<RankTimes>& ranks,
                         const ProbedMemory* probed);

}  // namespace shardrec::cli
