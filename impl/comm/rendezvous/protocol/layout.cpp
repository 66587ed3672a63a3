#include "comm/rendezvous/protocol/layout.h"

#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "core/environment.h"
#include "core/error.h"

namespace shardrec::comm::rendezvous {
namespace {

// What the launchers said, or 0.
int announced_ranks_per_node(std::span<const Join> ranks) {
  const auto announced = std::find_if(ranks.begin(), ranks.end(),
                                      [](const Join& rank) { return rank.ranks_on_host > 0; });
  if (announced == ranks.end()) return 0;
  const int size = static_cast<int>(ranks.size());
  const int per_node = std::min(announced->ranks_on_host, size);
  const int last_node = size - (size - 1) / per_node * per_node;
  for (const Join& rank : ranks) {
    const bool on_last = rank.rank / per_node == (size - 1) / per_node;
    const int here = on_last ? last_node : per_node;
    if (rank.ranks_on_host == 0 || rank.ranks_on_host == here || rank.ranks_on_host == per_node) {
      continue;
    }
    core::fail(SHARDREC_MISMATCH,
               core::sentence("rank ", rank.rank, " has LOCAL_WORLD_SIZE ", rank.ranks_on_host,
                              ", rank ", announced->rank, " has ", announced->ranks_on_host,
                              "; all nodes must have the same number of ranks, but the last, "
                              "which may have fewer"),
               {.rank = rank.rank, .value = rank.ranks_on_host});
  }
  return per_node;
}

// The inode of a namespace: equal for processes that share it; 0 where it cannot be told.
uint64_t namespace_number(const char* path) {
  struct stat about{};
  return ::stat(path, &about) == 0 ? static_cast<uint64_t>(about.st_ino) : 0;
}

}  // namespace

int ranks_per_node(std::span<const Join> ranks) {
  if (const int announced = announced_ranks_per_node(ranks); announced > 0) return announced;
  std::vector<std::pair<HostId, int>> runs;  // of neighbours on one machine
  for (const Join& rank : ranks) {
    if (runs.empty() || runs.back().first != rank.host) runs.emplace_back(rank.host, 0);
    ++runs.back().second;
  }
  const int first = runs.front().second;
  std::map<HostId, int> seen;
  for (size_t i = 0; i < runs.size(); ++i) {
    const bool fits = i + 1 < runs.size() ? runs[i].second == first : runs[i].second <= first;
    if (!fits || ++seen[runs[i].first] > 1) return 1;
  }
  return first;
}

std::vector<int> ranks_in_process(std::span<const Join> ranks) {
  std::map<std::pair<HostId, uint64_t>, int> processes;
  for (const Join& rank : ranks) ++processes[{rank.host, rank.process}];
  std::vector<int> counts;
  for (const Join& rank : ranks) counts.push_back(processes[{rank.host, rank.process}]);
  return counts;
}

HostId this_host() {
  Bytes identity;
  Writer writer(identity);
  try {
    std::array<std::byte, 36> boot{};  // the kernel tells no size
    core::default_environment().open("/proc/sys/kernel/random/boot_id")->read_at(0, boot);
    writer.bytes(boot);
  } catch (const core::Error&) {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) == 0) writer.bytes(bytes_of(name.data()));
  }
  writer.u64(namespace_number("/proc/self/ns/net"));
  HostId host{};
  crypto_generichash(static_cast<unsigned char*>(static_cast<void*>(host.data())), host.size(),
                     static_cast<const unsigned char*>(static_cast<const void*>(identity.data())),
                     identity.size(), nullptr, 0);
  return host;
}

uint64_t this_process() {
  return namespace_number("/proc/self/ns/pid") << 32 | static_cast<uint32_t>(::getpid());
}

}  // namespace shardrec::comm::rendezvous
