// Step 6 of the exchange on the way: where several parts of a table are on one node, what they have
// of a bag of another node's rank is added up there, by one rank, and only the sum crosses. Outputs
// have the same bits as without: sums are taken by node anyway (assembly.h).
//
// In two stages: owners send their partial sums to the adder, a rank of their own node, among their
// output messages; adders send the sums to the bags' ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "compute/kernels.h"
#include "core/grouped_tasks.h"
#include "core/memory.h"
#include "core/threads.h"
#include "embedding/tables/layout.h"
#include "embedding/tables/step_context.h"

namespace shardrec::embedding {

class NodeSums {
 public:
  explicit NodeSums(const Layout& layout);

  // Takes what this rank is to add from the beginnings of output messages; they are read until the
  // next call. Returns the rest of each, for OutputAssembly. Throws CORRUPT_DATA.
  std::span<const comm::ConstBytes> open(std::span<const comm::ConstBytes> messages);

  // Adds, and writes the messages of sums into `buffer`; `work` is scratch.
  void compute(const StepContext& context, core::Scratch& buffer);

  // One per rank; empty for those of this node.
  std::span<const comm::ConstBytes> messages() const { return messages_; }

 private:
  // Partial sums of one part and feature of one source.
  struct Partial {
    int64_t samples = 0;
    int64_t count = 0;                // rows
    const uint64_t* holds = nullptr;  // a bit per sample: has the part ids of its bag?
    const float* rows = nullptr;
    int64_t width = 0;
  };
  struct Input {
    size_t block = 0;  // among blocks of the node
    int64_t offset = 0;
  };
  // One feature's columns of one segment: the node's addends of it, in the order of their rows.
  struct Sum {
    int64_t cols = 0;
    std::vector<Input> addends;
  };
  // A sum of one source.
  struct Task {
    const Sum* sum = nullptr;
    const Partial* partials = nullptr;  // by block of the node
    int64_t chunks = 0;
    int64_t rows = 0;
    float* out = nullptr;
  };

  void read(const std::byte*& at, const std::byte* end, int owner, Partial& partial) const;
  uint64_t any_holds(const Task& task, int64_t word) const;
  void add_chunk(const Task& task, int64_t chunk, const compute::Kernels& kernels,
                 int64_t* next_row) const;

  const Layout& layout_;
  std::vector<int> sources_;  // whose bags this rank adds up
  int first_owner_ = 0;       // ranks of this node
  int end_owner_ = 0;
  std::vector<size_t> first_block_;  // by owner of the node
  std::vector<Sum> sums_;            // in the order of the messages
  size_t most_addends_ = 0;
  std::vector<Partial> partials_;  // by source, then block of the node
  std::vector<Task> tasks_;        // by source, then sum
  core::GroupedTasks chunks_;      // by task
  std::vector<comm::ConstBytes> rests_;
  std::vector<comm::ConstBytes> messages_;
};

}  // namespace shardrec::embedding
