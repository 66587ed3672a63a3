// Step 5 of the exchange: partial sums per (box, bag) on the owner, written straight into the
// messages that go back, to the bags' ranks or to those that add them up (node_sums.h). Of a
// sequence, the rows themselves, one per id.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "compute/kernels.h"
#include "core/memory.h"
#include "core/threads.h"
#include "embedding/exchange/inbox.h"
#include "embedding/tables/layout.h"
#include "embedding/tables/shard.h"
#include "embedding/tables/step_context.h"

namespace shardrec::embedding {

class PartialSums {
 public:
  explicit PartialSums(const Layout& layout);

  // Lays out the output messages in `buffer` and looks up every bag for the messages to other ranks.
  // direct: by own block, is this rank's message to itself without it? The work memory of the
  // context stays in use until compute_own().
  void compute(const Inbox& inbox, std::span<const uint8_t> direct, std::span<const Shard> shards,
               const StepContext& context, core::Scratch& buffer);

  // Looks up what this rank sends to itself: nobody else waits for it.
  void compute_own(const StepContext& context);

  std::span<const comm::ConstBytes> messages() const { return messages_; }

 private:
  // Rows [first, last) of the message for one received block.
  struct Task {
    compute::PooledLookup job;
    int64_t first = 0;
    int64_t last = 0;
  };

  // A part of a message: what a rank gets of the bags of a source, for itself or to add it up.
  struct Section {
    int to = 0;
    int source = 0;
    bool by_node = false;
  };

  bool sends(std::span<const uint8_t> direct, size_t block, const Section& section) const;
  static void add_bags(Task task, const ReceivedBlock& block, int64_t* offset,
                       std::vector<Task>& tasks);
  static void add_sequence(Task task, const ReceivedBlock& block, const int64_t* count,
                           std::vector<Task>& tasks);
  static void run(const std::vector<Task>& tasks, const StepContext& context);

  const Layout& layout_;
  std::vector<Section> sections_;        // by rank that gets them
  std::vector<int32_t> shard_of_block_;  // by own block: index into shards
  std::vector<Task> tasks_;              // for messages to other ranks
  std::vector<Task> own_tasks_;          // for this rank's to itself
  std::vector<comm::ConstBytes> messages_;
};

}  // namespace shardrec::embedding
