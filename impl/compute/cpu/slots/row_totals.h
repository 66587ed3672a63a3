// SlotOperations::add_row_totals on the CPU.
#pragma once

#include <span>

#include "compute/cpu/tasks/context.h"
#include "compute/slot_operations.h"

namespace shardrec::compute::cpu {

void add_row_totals(std::span<const RowTotals> shards, const Context& context);

}  // namespace shardrec::compute::cpu
