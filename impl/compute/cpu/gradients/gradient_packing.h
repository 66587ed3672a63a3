// GradientOperations::pack_bag_gradients and pack_sequence_gradients on the CPU: a task per chunk of bags, or of
// the ids of a sequence.
#pragma once

#include <span>

#include "compute/cpu/tasks/context.h"
#include "compute/gradient_operations.h"
#include "core/grouped_tasks.h"

namespace shardrec::compute::cpu {

class GradientPacking {
 public:
  void run(std::span<const BagGradients> blocks, const Context& context);
  void run(std::span<const SequenceGradients> blocks, const Context& context);

 private:
  template <class Gradients>
  void run_chunks(std::span<const Gradients> blocks, const Context& context);

  core::GroupedTasks chunks_;  // by block
};

}  // namespace shardrec::compute::cpu
