// Is there memory for the tables, and for the steps of lookups? Asked by all ranks together before any of them
// allocates: tables are touched as training goes, and a process that touches more than there is gets killed.
//
// What the ranks of one machine need is added up and held against what the machine has left, and
// what those of one cgroup need against the cgroup's limit (core/host.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/collective/collectives.h"
#include "core/host.h"
#include "embedding/tables/layout.h"

namespace shardrec::embedding {

// Bytes of weights and optimizer states that the parts of the layout's rank take.
uint64_t shard_bytes(const Layout& layout);

// Bytes that steps of so many lookups take of the host's memory beside them, at least: what is kept of each peer and of
// each block of a message, also where nothing is exchanged. It grows with the ranks, hence that of all ranks of a process
// with their square.
uint64_t step_bytes(const Layout& layout, int lookups);

// What a rank is about to allocate, and where. The plain bytes travel: a job's processes run the
// same build.
struct MemoryNeed {
  core::MachineId machine{};
  core::CgroupId cgroup{};  // the one that core::MemoryRoom is about
  uint64_t bytes = 0;
};

// Throws OUT_OF_MEMORY, with the bytes of the ranks that share and what is left for them.
void check_room(std::span<const MemoryNeed> ranks, size_t own, const core::MemoryRoom& room);

// The needs of all ranks, gathered, beside this rank's room, read before any rank could allocate.
// root: of core/host.h. Collective.
class GatheredNeeds {
 public:
  GatheredNeeds(comm::Collectives& collectives, const comm::Operation& operation, int rank,
                uint64_t bytes, const std::string& root = {});
  // As check_room(). Not collective: its result differs from rank to rank.
  void check() const { check_room(ranks_, own_, room_); }

 private:
  size_t own_;
  core::MemoryRoom room_;
  std::vector<MemoryNeed> ranks_;
};

}  // namespace shardrec::embedding
