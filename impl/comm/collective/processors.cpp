#include "comm/collective/processors.h"

#include <cstring>
#include <utility>

#include "comm/collective/collectives.h"

namespace shardrec::comm {
namespace {

// The plain bytes of one kind of machine: a job's processes run the same build. The affinity
// follows.
struct Head {
  core::MachineId machine{};
  double quota = 0;
  core::CgroupId quota_cgroup{};
};

constexpr size_t kMostAffinity = size_t{1} << 17;  // bytes, of 2^20 processors

}  // namespace

std::vector<std::byte> write_processors(const RankProcessors& own) {
  const Head head{
      .machine = own.machine, .quota = own.limits.quota, .quota_cgroup = own.limits.quota_cgroup};
  const std::vector<uint8_t>& affinity = own.limits.affinity;
  std::vector<std::byte> bytes(sizeof(Head) + affinity.size());
  std::memcpy(bytes.data(), &head, sizeof(Head));
  if (!affinity.empty()) std::memcpy(&bytes[sizeof(Head)], affinity.data(), affinity.size());
  return bytes;
}

RankProcessors read_processors(ConstBytes bytes) {
  Head head;
  if (bytes.size() < sizeof(Head) || bytes.size() > sizeof(Head) + kMostAffinity) return {};
  std::memcpy(&head, bytes.data(), sizeof(Head));
  RankProcessors rank{.machine = head.machine,
                      .limits = {.affinity = std::vector<uint8_t>(bytes.size() - sizeof(Head)),
                                 .quota = head.quota > 0 ? head.quota : 0,
                                 .quota_cgroup = head.quota_cgroup}};
  if (!rank.limits.affinity.empty()) {
    std::memcpy(rank.limits.affinity.data(), bytes.data() + sizeof(Head),
                rank.limits.affinity.size());
  }
  return rank;
}

int threads_of(std::span<const RankProcessors> ranks, size_t own) {
  std::vector<core::ProcessorLimits> here;
  size_t place = 0;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (rank == own) place = here.size();
    if (rank == own || ranks[rank].machine == ranks[own].machine) {
      here.push_back(ranks[rank].limits);
    }
  }
  return core::processor_share(here, place);
}

void share_processors(Communicator& communicator, double seconds) {
  constexpr Operation kProcessors{.name = "comm_create", .deadline_kind = DeadlineKind::kSetup};
  try {
    const Deadlines usual = communicator.deadlines();
    Deadlines meeting = usual;
    meeting.setup = seconds;
    communicator.set_deadlines(meeting);
    const auto own = static_cast<size_t>(communicator.rank());
    std::vector<RankProcessors> ranks(static_cast<size_t>(communicator.size()));
    ranks[own] = {.machine = core::machine_id(), .limits = core::processor_limits()};
    Collectives collectives(communicator.open_channel(Purpose::kControl), communicator.rank(),
                            communicator.size());
    const auto gathered = collectives.all_gather(kProcessors, write_processors(ranks[own]));
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      if (rank != own) ranks[rank] = read_processors(gathered[rank]);
    }
    communicator.set_default_threads(threads_of(ranks, own));
    communicator.set_deadlines(usual);
  } catch (...) {
    communicator.fail(kProcessors.name);
    throw;
  }
}

}  // namespace shardrec::comm
