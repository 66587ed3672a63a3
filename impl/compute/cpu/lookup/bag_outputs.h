// LookupOperations::look_up_outputs on the CPU: a task per chunk of items.
#pragma once

#include <cstddef>
#include <span>

#include "compute/cpu/tasks/context.h"
#include "compute/lookup_operations.h"
#include "core/grouped_tasks.h"

namespace shardrec::compute::cpu {

class OutputLookup {
 public:
  void run(std::span<const BagOutputs> blocks, size_t output_bytes, const Context& context);

 private:
  core::GroupedTasks tasks_;  // chunks by block
};

}  // namespace shardrec::compute::cpu
