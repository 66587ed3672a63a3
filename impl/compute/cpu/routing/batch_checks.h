// RoutingOperations::read_lengths and sort_samples on the CPU: a task per feature.
#pragma once

#include <span>

#include "compute/cpu/tasks/context.h"
#include "compute/routing_operations.h"

namespace shardrec::compute::cpu {

void read_lengths(std::span<const BagLengths> features, std::span<CheckedLengths> checked,
                  const Context& context);
void sort_samples(std::span<const SamplesByBag> features, std::span<WrongInteger> wrong,
                  const Context& context);

}  // namespace shardrec::compute::cpu
