// A communicator arranged as a matrix of replicas x sharding group: each rank is in one sharding
// group (a row, which holds all tables once) and in one replica group (a column, whose ranks hold
// the same boxes). Collective to make.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/communicator.h"
#include "embedding/tables/sharding_groups.h"
#include "shardrec/options.h"

namespace shardrec::training {

struct MeshPlace {
  int sharding_group = 0;  // number of the replica; also the rank in the replica group
  int replica_group = 0;   // also the rank in the sharding group
};

// INTRA_NODE_SYNC: the ranks of a replica group are neighbours, sharding groups are interleaved;
// INTRA_NODE_SHARD: the ranks of a sharding group are neighbours.
MeshPlace mesh_place_of(int rank, int ranks, int sharding_group_size, shardrec_placement placement);

struct Mesh {
  embedding::ShardingGroups groups;
  MeshPlace place;
  std::shared_ptr<comm::Communicator> sharding;
  std::shared_ptr<comm::Communicator> replicas;
};

// Throws INVALID_ARGUMENT, the same on all ranks when they give the same.
Mesh make_mesh(comm::Communicator& world, int sharding_group_size, shardrec_placement placement);

}  // namespace shardrec::training
