// Ranks as threads or as this process, and what they gather from each other.
#include "launch/ranks.h"

#include <algorithm>
#include <iostream>

#include "command/user_error.h"
#include "launch/engines.h"
#include "launch/processes.h"

namespace shardrec::cli {

void run_ranks(const RankGroup& group, const std::function<void(int, Comm&)>& body) {
  const auto on_rank = [&](Comm& comm) { body(comm.rank(), comm); };
  if (!in_processes(group.engine)) {
    run(group.ranks, on_rank, group.ranks_per_node);
    return;
  }
  Comm comm = Comm::from_env(CommOptions().engine(group.engine));
  if (comm.size() != group.ranks) {
    throw UserError("--ranks is " + std::to_string(group.ranks) + "; " +
                    std::to_string(comm.size()) + " processes were started.");
  }
  run_rank(comm, on_rank);
}

bool starts_ranks(const RankGroup& group) {
  return in_processes(group.engine) && own_rank(group.engine) < 0;
}

int start_ranks(const RankGroup& group) {
  const LaunchEnd end = launch({.ranks = group.ranks,
                                .ranks_per_node = group.ranks_per_node,
                                .engine = group.engine,
                                .command = own_command()});
  if (!end.failure.empty()) std::cerr << "shardrec: " << end.failure << " first.\n";
  return end.code;
}

std::vector<std::vector<double>> gather(Comm& comm, const std::vector<double>& own) {
  const auto ranks = static_cast<size_t>(comm.size());
  std::vector<double> all(own.size() * ranks);
  comm.all_gather(own, all);
  std::vector<std::vector<double>> by_rank;
  for (size_t r = 0; r < ranks; ++r) {
    const auto first = all.begin() + static_cast<int64_t>(r * own.size());
    by_rank.emplace_back(first, first + static_cast<int64_t>(own.size()));
  }
  return by_rank;
}

Slice slice_of(int64_t global, int ranks, int rank, int64_t unit) {
  const int64_t units = (global + unit - 1) / unit;
  return {std::min(global, units * rank / ranks * unit),
          std::min(global, units * (rank + 1) / ranks * unit)};
}

}  // namespace shardrec::cli
