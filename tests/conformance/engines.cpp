#include "conformance/engines.h"

#include "comm/local/local_group.h"
#include "support/memory_link.h"

namespace shardrec::comm {
namespace {

const Engine kLocal{
    .name = "local", .run = [](int ranks, int ranks_per_node, const Body& body) {
      const auto group = local::make_group(ranks, ranks_per_node);
      return by_rank(run_joined(ranks, [&](int rank) { return local::join(group, rank); }, body));
    }};

Engine remote_engine(const char* name, support::MemoryLinkOptions options) {
  return {.name = name, .run = [options](int ranks, int ranks_per_node, const Body& body) {
            auto given = options;
            given.ranks_per_node = ranks_per_node;
            const auto link = support::MemoryLink::make(ranks, given);
            return by_rank(run_joined(ranks, [&](int rank) { return link->join(rank); }, body));
          }};
}

const Engine kEager = remote_engine("remote, messages are gone when they are posted", {});
const Engine kRendezvous =
    remote_engine("remote, messages wait for their receiver", {.rendezvous = true});
const Engine kSlow = remote_engine("remote, messages overtake each other",
                                   {.rendezvous = true, .delay = 0.001, .broadcast_delay = 0.02});

}  // namespace

const Engine* local_engine() { return &kLocal; }
const Engine* eager_engine() { return &kEager; }
const Engine* rendezvous_engine() { return &kRendezvous; }
const Engine* slow_engine() { return &kSlow; }

}  // namespace shardrec::comm
