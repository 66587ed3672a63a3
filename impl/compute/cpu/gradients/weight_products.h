// GradientOperations::take_weight_products on the CPU, the bags of all blocks cut into tasks of about as many
// numbers; and GradientOperations::sum_weight_products, a task per feature.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compute/cpu/tasks/context.h"
#include "compute/gradient_operations.h"

namespace shardrec::compute::cpu {

class WeightProductTasks {
 public:
  void run(std::span<const WeightProducts> blocks, const Context& context);

 private:
  // Bags [first, last) of one block.
  struct Task {
    const WeightProducts* block = nullptr;
    const int64_t* offsets = nullptr;  // first id of each bag
    int64_t first = 0;
    int64_t last = 0;
  };
  void add_bags(const WeightProducts& block, int64_t* offsets);
  static void take(const Task& task, const Kernels& kernels);

  std::vector<Task> tasks_;
};

void sum_weight_products(std::span<const WeightGradients> features, const Context& context);

}  // namespace shardrec::compute::cpu
