// How the ranks of one machine share its processors, whatever process or container each lives in.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "core/host.h"

namespace shardrec::comm {

// Where a rank runs, as it announces it. Bytes that no rank writes are read as those of a rank on
// another machine.
struct RankProcessors {
  core::MachineId machine{};
  core::ProcessorLimits limits{};
};
std::vector<std::byte> write_processors(const RankProcessors& own);
RankProcessors read_processors(ConstBytes bytes);

// The threads of rank `own` (core::processor_share) among the ranks of its machine.
int threads_of(std::span<const RankProcessors> ranks, size_t own);

// The ranks gather where each of them runs, and each sets the default threads of its communicator. It is
// the first call on a new communicator. If a rank throws, the others fail too. Collective, blocks for
// at most `seconds`.
void share_processors(Communicator& communicator, double seconds);

}  // namespace shardrec::comm
