// Ranks of one process that train sharded parameters, and the groups of a strategy.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "comm/world.h"
#include "dense/sharded_parameters.h"

namespace shardrec::dense {

inline void run_well(int ranks, const std::function<void(comm::Communicator&)>& body) {
  for (const auto& error : comm::run_ranks(ranks, body)) {
    EXPECT_FALSE(error) << error->sentence();
  }
}

inline FsdpGroups groups_for(comm::Communicator& communicator, shardrec_fsdp_strategy strategy,
                             int sharding) {
  if (strategy == SHARDREC_FSDP_HYBRID_SHARD) return mesh_of(communicator, sharding);
  return {.world = borrowed(communicator)};
}

}  // namespace shardrec::dense
