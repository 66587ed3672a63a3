// How the ranks of a collection are numbered in sharding groups. A plan speaks of the ranks of one group; every group
// holds all of the cut tables, and trains them on the batches of its own ranks, or, where they are exact, of all ranks.
// A collection off a mesh is one group; so is each replica on a mesh whose tables are all cut. Where tables of a mesh
// are replicated, or groups are exact, a collection is of all its groups: what concerns replicated tables goes to every
// rank of the mesh, what concerns cut ones stays in the group, but for ids and gradients where they are exact. Exact
// groups may share the optimizer states: each has those of some rows of every box, and takes the steps of these rows.
#pragma once

#include <cstdint>

namespace shardrec::embedding {

struct ShardingGroups {
  int count = 1;
  int size = 1;               // ranks of each
  bool interleaved = false;   // are the ranks of a group count apart, and not neighbours?
  bool exact = false;         // do ids and gradients of cut tables go to the owners in all groups?
  bool share_states = false;  // of exact ones: has each the states of its rows alone?

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
