// How ranks lie on nodes and in processes, from what each said of itself.
#pragma once

#include <span>
#include <vector>

#include "comm/rendezvous/protocol/messages.h"

namespace shardrec::comm::rendezvous {

// Ranks on a node, the last of which may have fewer: what the launchers said, which must fit (else
// MISMATCH, naming a rank). Where nobody said anything: the machines, where each has neighbouring
// ranks and as many as the others; else 1. ranks: by rank.
int ranks_per_node(std::span<const Join> ranks);

// For each rank, how many live in its process.
std::vector<int> ranks_in_process(std::span<const Join> ranks);

// This machine and network namespace, and this process.
HostId this_host();
uint64_t this_process();

}  // namespace shardrec::comm::rendezvous
