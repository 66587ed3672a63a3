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

namespace {

// Of many ranks a few numbers at a time: what each of a thousand in one process has at once is a million times as much.
std::vector<std::vector<double>> gather_where(bool wanted, Comm& comm,
                                              const std::vector<double>& own) {
  constexpr size_t kMostNumbers = 4096;
  const auto ranks = static_cast<size_t>(comm.size());
  const size_t at_once = std::max(size_t{1}, kMostNumbers / ranks);
  std::vector<std::vector<double>> by_rank(wanted ? ranks : 0);
  std::vector<double> few;
  std::vector<double> all;
  for (size_t first = 0; first < own.size(); first += at_once) {
    const size_t count = std::min(at_once, own.size() - first);
    few.assign(own.begin() + static_cast<int64_t>(first),
               own.begin() + static_cast<int64_t>(first + count));
    all.resize(count * ranks);
    comm.all_gather(few, all);
    for (size_t r = 0; r < by_rank.size(); ++r) {
      const auto of_rank = all.begin() + static_cast<int64_t>(r * count);
      by_rank[r].insert(by_rank[r].end(), of_rank, of_rank + static_cast<int64_t>(count));
    }
  }
  return by_rank;
}

}  // namespace

std::vector<std::vector<double>> gather(Comm& comm, const std::vector<double>& own) {
  return gather_where(true, comm, own);
}

std::vector<std::vector<double>> gather_on_first(Comm& comm, const std::vector<double>& own) {
  return gather_where(comm.rank() == 0, comm, own);
}

Slice slice_of(int64_t global, int ranks, int rank, int64_t unit) {
  const int64_t units = (global + unit - 1) / unit;
  return {std::min(global, units * rank / ranks * unit),
          std::min(global, units * (rank + 1) / ranks * unit)};
}

}  // namespace shardrec::cli
