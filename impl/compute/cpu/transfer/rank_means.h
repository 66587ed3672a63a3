// TransferOperations::average on the CPU.
#pragma once

#include "compute/cpu/tasks/context.h"
#include "compute/transfer_operations.h"

namespace shardrec::compute::cpu {

void average(const RankMeans& means, const Context& context);

}  // namespace shardrec::compute::cpu
