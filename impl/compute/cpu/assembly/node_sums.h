// AssemblyOperations::count_node_sums and AssemblyOperations::add_on_nodes on the CPU: a task per chunk of samples.
#pragma once

#include <cstdint>
#include <span>

#include "compute/assembly_operations.h"
#include "compute/cpu/tasks/context.h"
#include "core/grouped_tasks.h"

namespace shardrec::compute::cpu {

class NodeSummation {
 public:
  static void count(std::span<const NodeSum> sums, std::span<int64_t> rows, const Context& context);
  void run(std::span<const NodeSum> sums, const Context& context);

 private:
  core::GroupedTasks chunks_;  // by sum
};

}  // namespace shardrec::compute::cpu
