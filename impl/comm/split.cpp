#include "comm/split.h"

#include <algorithm>
#include <utility>

#include "comm/failure.h"
#include "core/error.h"

namespace shardrec::comm {
namespace {

// The largest n for which rank / n parts the ranks of the subgroup as their nodes in the parent do. 1
// (every rank on a node of its own) if there is none.
int ranks_per_node_of(std::span<const int> nodes) {
  const auto first_other =
      std::find_if(nodes.begin(), nodes.end(), [&](int node) { return node != nodes.front(); });
  const int guess = static_cast<int>(first_other - nodes.begin());
  for (size_t i = 1; i < nodes.size(); ++i) {
    const bool same = static_cast<int>(i) / guess == static_cast<int>(i - 1) / guess;
    if (same != (nodes[i] == nodes[i - 1])) return 1;
  }
  return guess;
}

}  // namespace

Subgroup subgroup_of(const Communicator& parent, std::span<const Wanted> wanted) {
  const Wanted& mine = wanted[static_cast<size_t>(parent.rank())];
  std::vector<std::pair<int32_t, int>> order;  // (key, rank) of this color
  for (int rank = 0; rank < parent.size(); ++rank) {
    const Wanted& theirs = wanted[static_cast<size_t>(rank)];
    if (theirs.color == mine.color) order.emplace_back(theirs.key, rank);
  }
  std::sort(order.begin(), order.end());
  Subgroup subgroup;
  std::vector<int> nodes;
  for (const auto& [key, rank] : order) {
    if (rank == parent.rank()) subgroup.rank = static_cast<int>(subgroup.members.size());
    subgroup.members.push_back(rank);
    nodes.push_back(parent.node_of(rank));
  }
  subgroup.ranks_per_node = ranks_per_node_of(nodes);
  return subgroup;
}

void check_deadlines(const Deadlines& deadlines) {
  for (const double seconds : {deadlines.step, deadlines.setup, deadlines.warn}) {
    if (seconds > 0) continue;
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("a deadline of ", decimal(seconds), " s; it must be above 0"));
  }
}

}  // namespace shardrec::comm
