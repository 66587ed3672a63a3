// Backend::count_node_sums and Backend::add_on_nodes on the CPU: a task per chunk of samples.
#pragma once

#include <cstdint>
#include <span>

#include "compute/cpu/operations/context.h"
#include "compute/output_operations.h"
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
