#include "plan/plan.h"

#include "core/error.h"

namespace shardrec::plan {

namespace {

using core::fail;
using core::sentence;

constexpr int32_t kMostRanks = 1 << 20;

}  // namespace

void check_topology(const Topology& topology) {
  if (topology.ranks < 1 || topology.ranks > kMostRanks) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("a topology has 1 to ", kMostRanks, " ranks, not ", topology.ranks),
         {.value = topology.ranks, .limit = kMostRanks + 1});
  }
  if (topology.ranks_per_node < 1 || topology.ranks_per_node > topology.ranks) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("a node has 1 to ", topology.ranks, " of ", topology.ranks, " ranks, not ",
                  topology.ranks_per_node),
         {.value = topology.ranks_per_node, .limit = topology.ranks + 1});
  }
}

}  // namespace shardrec::plan
