// TransferOperations on rows on the CPU, where all memory is the host's.
#pragma once

#include <span>

#include "compute/cpu/tasks/context.h"
#include "compute/transfer_operations.h"

namespace shardrec::compute::cpu {

// copy_to_host, copy_from_host and convert_on_host.
void copy_rows(std::span<const RowTransfer> transfers, const Context& context);
// move_rows: the numbers of a target are different ones, so that all threads write.
void move_rows(std::span<const RowTransfer> transfers, const Context& context);

}  // namespace shardrec::compute::cpu
