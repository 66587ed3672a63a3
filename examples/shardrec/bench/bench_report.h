// What `bench` found: one line of JSON.
#pragma once

#include <string>
#include <vector>

#include "bench/bench_limit.h"
#include "bench/bench_options.h"
#include "bench/rank_times.h"

namespace shardrec::cli {

// ranks: at least one, with as many steps each, at least one. probed: null where there is none.
std::string bench_report(const BenchOptions& options, const std::vector<RankTimes>& ranks,
                         const ProbedMemory* probed);

}  // namespace shardrec::cli
