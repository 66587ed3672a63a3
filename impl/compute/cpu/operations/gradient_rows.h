// Backend::locate_gradients on the CPU: a task per block.
#pragma once

#include <span>

#include "compute/cpu/operations/context.h"
#include "compute/operations.h"

namespace shardrec::compute::cpu {

void locate_gradients(std::span<const GradientBlock> blocks, const Context& context);

}  // namespace shardrec::compute::cpu
