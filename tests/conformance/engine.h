// What every engine must do alike: those of this process (in_memory.cpp) and, in processes, those
// that are plug-ins (in_processes.cpp).
//
// Tests share no memory between ranks, so that an engine may run each rank in a process of its own:
// they know of another rank only what it sends. What a rank checks itself, or throws, is the
// result.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/world.h"
#include "core/error.h"

namespace shardrec::comm {

// Of the ranks that this process has run: what body threw, if anything.
using Results = std::map<int, std::optional<core::Error>>;

struct Engine {
  const char* name = "";
  // Runs body on every rank of a group, as run_joined() does; in processes, with their nodes.
  std::function<Results(int ranks, int ranks_per_node, const Body& body)> run;
  std::vector<int> worlds = {1, 2, 3, 4, 8};  // sizes that run() accepts
  bool ranks_share_a_process = true;

  bool offers(int ranks) const {
    return std::find(worlds.begin(), worlds.end(), ranks) != worlds.end();
  }
};

inline std::ostream& operator<<(std::ostream& out, const Engine* engine) {
  return out << engine->name;
}

inline Results by_rank(Errors errors) {
  Results results;
  for (size_t rank = 0; rank < errors.size(); ++rank) {
    results.emplace(static_cast<int>(rank), std::move(errors[rank]));
  }
  return results;
}

// ranks_per_node 0: one node.
inline Results run(const Engine& engine, int ranks, const Body& body, int ranks_per_node = 0) {
  return engine.run(ranks, ranks_per_node == 0 ? ranks : ranks_per_node, body);
}

// No rank throws.
inline void run_well(const Engine& engine, int ranks, const Body& body, int ranks_per_node = 0) {
  for (const auto& [rank, error] : run(engine, ranks, body, ranks_per_node)) {
    EXPECT_FALSE(error) << engine.name << ", " << ranks << " ranks, rank " << rank << ": "
                        << error->sentence();
  }
}

class OnEngine : public testing::TestWithParam<const Engine*> {
 protected:
  const Engine& engine() const { return *GetParam(); }
};

class CollectiveConformance : public OnEngine {};
class ExchangeConformance : public OnEngine {};
// Data-parallel parameters.
class DdpConformance : public OnEngine {};
class FsdpConformance : public OnEngine {};
// Groups that die. An engine whose ranks cannot outlive a failure leaves these out.
class FailureConformance : public OnEngine {};
// Messages of more than 2 GiB.
class HugeConformance : public OnEngine {};

}  // namespace shardrec::comm
