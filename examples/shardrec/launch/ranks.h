// The ranks of one group, wherever they are: threads of this process (engine "local"), or processes
// of which this is one, as its environment says. The first failure aborts the others and is what
// the caller sees.
#pragma once

#include <functional>
#include <shardrec/shardrec.hpp>
#include <string>
#include <vector>

namespace shardrec::cli {

struct RankGroup {
  int ranks = 1;
  int ranks_per_node = 1;
  std::string engine = "local";
};

// Calls body(rank, communicator) for each rank that lives in this process, on a thread of its own
// where there are several; returns when all have ended.
void run_ranks(const RankGroup& group, const std::function<void(int, Comm&)>& body);

// Of an engine between processes: this process is none of its ranks, and is to start them.
bool starts_ranks(const RankGroup& group);
// Starts this command line again as ranks; returns the exit code.
int start_ranks(const RankGroup& group);

// What every rank has given, by rank, on all of them: as many numbers each. Collective.
std::vector<std::vector<double>> gather(Comm& comm, const std::vector<double>& own);
// The same on rank 0; elsewhere nothing.
std::vector<std::vector<double>> gather_on_first(Comm& comm, const std::vector<double>& own);

// Samples [first, last) of a global batch that belong to a rank: contiguous, in rank order, cut at
// multiples of `unit` only, sizes that differ by at most one unit.
struct Slice {
  int64_t first = 0;
  int64_t last = 0;
  [[nodiscard]] int64_t size() const { return last - first; }
};
Slice slice_of(int64_t global, int ranks, int rank, int64_t unit = 1);

}  // namespace shardrec::cli
