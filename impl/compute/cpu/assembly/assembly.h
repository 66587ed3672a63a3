// AssemblyOperations::count_chunk_sums, assemble_bags and assemble_sequences on the CPU: a task per chunk of
// bags, or of the ids of a sequence.
#pragma once

#include <cstdint>
#include <span>

#include "compute/assembly_operations.h"
#include "compute/cpu/tasks/context.h"
#include "core/grouped_tasks.h"

namespace shardrec::compute::cpu {

class Assembly {
 public:
  static void count(std::span<const NodeSumCount> counts, std::span<int64_t> rows,
                    const Context& context);
  void run(std::span<const PooledOutput> outputs, const Context& context);
  void run(std::span<const SequenceOutput> outputs, const Context& context);

 private:
  core::GroupedTasks chunks_;  // by output
};

}  // namespace shardrec::compute::cpu
