// TransferOperations::add_gains on the CPU.
#pragma once

#include <span>

#include "compute/cpu/tasks/context.h"
#include "compute/transfer_operations.h"

namespace shardrec::compute::cpu {

void add_gains(std::span<const RowGains> gains, const Context& context);

}  // namespace shardrec::compute::cpu
