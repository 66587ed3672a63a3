// Steps 5 and 6 of the exchange: partial sums per (box, bag) on the owner, written straight into
// the messages that go back; put together on the source, in an order that knows no transport. Of a
// sequence, the rows themselves, one per id.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "compute/kernels.h"
#include "core/memory.h"
#include "core/tensor.h"
#include "core/threads.h"
#include "embedding/inbox.h"
#include "embedding/layout.h"
#include "embedding/route.h"
#include "embedding/shard.h"

namespace shardrec::embedding {

// The owner's half.
class PartialSums {
 public:
  explicit PartialSums(const Layout& layout);

  // Looks up every received bag and writes the output messages into `buffer`; `work` is scratch.
  void compute(const Inbox& inbox, std::span<const Shard> shards, const compute::Kernels& kernels,
               core::Threads& threads, core::Scratch& work, core::Scratch& buffer);

  std::span<const comm::ConstBytes> messages() const { return messages_; }

 private:
  // Rows [first, last) of the message for one received block.
  struct Task {
    compute::PooledLookup job;
    int64_t first = 0;
    int64_t last = 0;
  };

  void add_bags(Task task, const ReceivedBlock& block, int64_t* offset);
  void add_sequence(Task task, const ReceivedBlock& block, const int64_t* count);

  const Layout& layout_;
  std::vector<int32_t> shard_of_block_;  // by own block: index into shards
  std::vector<Task> tasks_;
  std::vector<comm::ConstBytes> messages_;
};

// The source's half: adds the partial sums of the rank's own bags and writes outputs.
class OutputAssembly {
 public:
  explicit OutputAssembly(const Layout& layout);

  // messages: one per owner, as PartialSums wrote them; they and the routed batch are read until
  // the next call. Throws CORRUPT_DATA when one is not as long as the batch needs.
  void open(const RoutedBatch& routed, std::span<const comm::ConstBytes> messages);

  // Writes one output.
  void assemble(const RoutedBatch& routed, int32_t output, const compute::Kernels& kernels,
                core::Threads& threads, core::Scratch& work, const core::Matrix& out);

 private:
  // What one thread needs while it works on a chunk.
  struct Workspace {
    int64_t* next_row = nullptr;  // by addend of a segment
    float* node_sum = nullptr;    // [columns of the widest table]
  };
  void assemble_bags(const RoutedBatch& routed, const compute::Kernels& kernels, int32_t feature,
                     int64_t chunk, const Workspace& work, const core::Matrix& out) const;
  void assemble_sequence(const RoutedBatch& routed, int32_t feature, int64_t chunk,
                         const Workspace& work, const core::Matrix& out) const;
  // Rows of each addend's message before a chunk.
  void start_chunk(const Segment& segment, int32_t feature, int64_t chunk,
                   const Workspace& work) const;

  const Layout& layout_;
  int64_t widest_ = 0;  // columns of the widest table
  size_t most_addends_ = 0;
  // By feature, then by part of its table: where the block stands in the owner's message and in
  // routed.
  struct Source {
    const float* rows = nullptr;
    const SentBlock* block = nullptr;
    int64_t width = 0;
  };
  std::vector<size_t> first_source_;  // by feature
  std::vector<Source> sources_;
  std::vector<int64_t> first_task_;  // chunks of the features before, by feature, while assembling
};

}  // namespace shardrec::embedding
