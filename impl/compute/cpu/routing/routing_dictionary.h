// RoutingOperations::deduplicate_ids on the CPU: one message at a time on each thread, each block moved to
// the end of the one before it.
#pragma once

#include <span>

#include "compute/cpu/tasks/context.h"
#include "compute/routing_operations.h"

namespace shardrec::compute::cpu {

void deduplicate_ids(std::span<const DeduplicatedBlocks> messages, const Context& context);

}  // namespace shardrec::compute::cpu
