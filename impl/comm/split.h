// Which ranks form the group that one rank joins in a split; the same on every engine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"

namespace shardrec::comm {

// What a rank brings to a split.
struct Wanted {
  int32_t color = 0;
  int32_t key = 0;
};

struct Subgroup {
  std::vector<int> members;  // their ranks in the parent, ordered by (key, rank)
  int rank = 0;              // this rank's number in the subgroup
  int ranks_per_node = 1;
};

// wanted: of all ranks of `parent`, whose own is among them.
Subgroup subgroup_of(const Communicator& parent, std::span<const Wanted> wanted);

// Throws INVALID_ARGUMENT unless all are above 0.
void check_deadlines(const Deadlines& deadlines);

}  // namespace shardrec::comm
