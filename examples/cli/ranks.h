// Ranks as threads of this process: run_ranks starts one thread per rank, gives each its
// communicator and waits for all. The first failure aborts the others and is what the caller sees.
#pragma once

#include <functional>

#include "api.h"

namespace shardrec::cli {

void run_ranks(int ranks, int ranks_per_node, const std::function<void(int, shardrec_comm*)>& body);

// Samples [first, last) of a global batch that belong to a rank: contiguous, in rank order, sizes
// that differ by at most one.
struct Slice {
  int64_t first = 0;
  int64_t last = 0;
  [[nodiscard]] int64_t size() const { return last - first; }
};
Slice slice_of(int64_t global, int ranks, int rank);

}  // namespace shardrec::cli
