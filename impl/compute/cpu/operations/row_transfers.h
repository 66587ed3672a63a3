// Backend::copy_to_host, copy_from_host and convert_on_host on the CPU, where all memory is the host's.
#pragma once

#include <span>

#include "compute/cpu/operations/context.h"
#include "compute/row_transfers.h"

namespace shardrec::compute::cpu {

void move_rows(std::span<const RowTransfer> transfers, const Context& context);

}  // namespace shardrec::compute::cpu
