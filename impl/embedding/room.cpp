#include "embedding/room.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "embedding/tables/shard.h"

namespace shardrec::embedding {
namespace {

// The needs of ranks that share one thing.
struct Shared {
  uint64_t bytes = 0;
  int ranks = 0;
};

template <class Predicate>
Shared add_up(std::span<const MemoryNeed> ranks, const Predicate& shares) {
  Shared all;
  for (const MemoryNeed& rank : ranks) {
    if (!shares(rank)) continue;
    const uint64_t room = std::numeric_limits<uint64_t>::max() - all.bytes;
    all.bytes += std::min(rank.bytes, room);
    ++all.ranks;
  }
  return all;
}

[[noreturn]] void refuse(uint64_t own, const Shared& shared, uint64_t left,
                         const std::string& where) {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  core::fail(SHARDREC_OUT_OF_MEMORY,
             core::sentence("the boxes of this rank, their state and steps need ", own,
                            " bytes, those of ", shared.ranks,
                            shared.ranks == 1 ? " rank " : " ranks together ", shared.bytes, "; ",
                            where, " has ", left, " left"),
             {.value = static_cast<int64_t>(std::min(shared.bytes, kMost)),
              .limit = static_cast<int64_t>(std::min(left, kMost))});
}

}  // namespace

uint64_t shard_bytes(const Layout& layout) {
  uint64_t bytes = 0;
  for (const int32_t part : layout.parts_of(layout.rank())) bytes += Shard::bytes_of(layout, part);
  return bytes;
}

uint64_t step_bytes(const Layout& layout, int lookups) {
  // As tests/embedding/memory_per_pair_test.cpp measures it. Of each lookup: where a block is on its source and on its
  // owner; a block that travels with every batch, for all ids of its feature go there; heads of messages, and what is
  // kept of a peer. Of all lookups together: what a block gets of a batch.
  constexpr uint64_t kOfBlock = 4;
  constexpr uint64_t kOfTravellingBlock = 250;
  constexpr uint64_t kOfPeer = 500;
  constexpr uint64_t kOfCountedBlock = 20;
  const auto ranks = static_cast<uint64_t>(layout.ranks());
  uint64_t travelling = 0;
  for (const Part& part : layout.parts()) {
    if (!layout.takes_from(part, layout.rank())) continue;
    const TableLayout& table = layout.table(part.table);
    const bool always = table.routing.intervals() == 1 && !table.own_ids_only();
    travelling += always ? table.features.size() : 0;
  }
  const uint64_t received = ranks * layout.blocks_of(layout.rank()).size();
  return static_cast<uint64_t>(lookups) * ((layout.block_count() + received) * kOfBlock +
                                           travelling * kOfTravellingBlock + ranks * kOfPeer) +
         layout.block_count() * kOfCountedBlock;
}

void check_room(std::span<const MemoryNeed> ranks, size_t own, const core::MemoryRoom& room) {
  const MemoryNeed& mine = ranks[own];
  if (mine.bytes == 0) return;
  const auto on_machine = [&](const MemoryNeed& rank) { return rank.machine == mine.machine; };
  const Shared machine = add_up(ranks, on_machine);
  if (machine.bytes > room.machine) refuse(mine.bytes, machine, room.machine, "this machine");
  if (room.cgroup == core::MemoryRoom::kUnknown) return;
  const Shared cgroup = add_up(ranks, [&](const MemoryNeed& rank) {
    return on_machine(rank) && rank.cgroup == mine.cgroup;
  });
  if (cgroup.bytes > room.cgroup) {
    refuse(mine.bytes, cgroup, room.cgroup, "the cgroup " + room.cgroup_path);
  }
}

GatheredNeeds::GatheredNeeds(comm::Collectives& collectives, const comm::Operation& operation,
                             int rank, uint64_t bytes, const std::string& root)
    : own_(static_cast<size_t>(rank)), room_(core::memory_room(root)) {
  const MemoryNeed mine{
      .machine = core::machine_id(root), .cgroup = room_.cgroup_id, .bytes = bytes};
  const auto told = collectives.all_gather(operation, std::as_bytes(std::span(&mine, 1)));
  ranks_.resize(told.size());
  for (size_t peer = 0; peer < told.size(); ++peer) {
    if (told[peer].size() != sizeof(MemoryNeed)) continue;  // nothing that a rank sends: no need
    std::memcpy(&ranks_[peer], told[peer].data(), sizeof(MemoryNeed));
  }
  ranks_[own_] = mine;
}

}  // namespace shardrec::embedding
