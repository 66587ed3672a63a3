// TransferOperations::fill on the CPU.
#pragma once

#include "compute/cpu/tasks/context.h"
#include "compute/transfer_operations.h"

namespace shardrec::compute::cpu {

void fill(const InitialRows& rows, const Context& context);

}  // namespace shardrec::compute::cpu
