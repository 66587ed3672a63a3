// LookupOperations::sum_bags on the CPU: the bags of all blocks are cut into tasks of about as many ids.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compute/cpu/tasks/context.h"
#include "compute/lookup_operations.h"

namespace shardrec::compute::cpu {

class BagSummation {
 public:
  void run(std::span<const BagSums> blocks, const Context& context);

 private:
  // Rows [first, last) of what one block writes.
  struct Task {
    PooledLookup job;
    int64_t first = 0;
    int64_t last = 0;
  };

  void add_bags(const BagSums& block, int64_t* offset);
  void add_ids(const BagSums& block, const int64_t* count);

  std::vector<Task> tasks_;
};

}  // namespace shardrec::compute::cpu
