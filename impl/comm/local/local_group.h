// The `local` engine: ranks are threads of this process. Messages are read in place from the
// sender's memory; no progress thread.
#pragma once

#include <memory>

#include "comm/communicator.h"

namespace shardrec::comm::local {

class Group;  // shared by all ranks; lives as long as one of them, or one of their channels

// ranks >= 1, 1 <= ranks_per_node <= ranks.
std::shared_ptr<Group> make_group(int ranks, int ranks_per_node);
int group_size(const Group& group) noexcept;

// Joins as `rank`; INVALID_STATE when it is taken. Destroying the result without leave() is a
// failure of this rank: peers that wait for it, now or later, get PEER_FAILED.
std::shared_ptr<Communicator> join(std::shared_ptr<Group> group, int rank);

}  // namespace shardrec::comm::local
