// Backend::fill on the CPU.
#pragma once

#include "compute/cpu/operations/context.h"
#include "compute/operations.h"

namespace shardrec::compute::cpu {

void fill(const InitialRows& rows, const Context& context);

}  // namespace shardrec::compute::cpu
