// How the ranks of a collection are numbered in sharding groups. A plan speaks of the ranks of one group; every group holds
// all of the cut tables, and trains them on the batches of its own ranks. A collection off a mesh is one group; so is each
// replica on a mesh whose tables are all cut. Where tables of a mesh are replicated, a collection is of all its groups: what
// concerns those tables goes to every rank of the mesh, what concerns cut ones stays in the group.
#pragma once

#include <cstdint>

namespace shardrec::embedding {

struct ShardingGroups {
  int count = 1;
  int size = 1;              // ranks of each
  bool interleaved = false;  // are the ranks of a group count apart, and not neighbours?

  int ranks() const { return count * size; }
  int group_of(int rank) const { return interleaved ? rank % count : rank / size; }
  // A rank's number in its group: the one that plans speak of. It ascends with the rank.
  int number_of(int rank) const { return interleaved ? rank / count : rank % size; }
  int rank_of(int group, int number) const {
    return interleaved ? number * count + group : group * size + number;
  }

  bool operator==(const ShardingGroups&) const = default;
};

}  // namespace shardrec::embedding
