// RoutingOperations::check_bags and expand_ids on the CPU: a task per block.
#pragma once

#include <span>

#include "compute/cpu/tasks/context.h"
#include "compute/routing_operations.h"

namespace shardrec::compute::cpu {

void check_bags(std::span<const Bags> blocks, std::span<BagDefect> defects, const Context& context);
void expand_ids(std::span<const CodedIds> blocks, std::span<WrongInteger> wrong,
                const Context& context);

}  // namespace shardrec::compute::cpu
