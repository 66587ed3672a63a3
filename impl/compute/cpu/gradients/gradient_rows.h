// Operations on gradients on the CPU, where their owner finds them: a task per block.
#pragma once

#include <span>

#include "compute/cpu/tasks/context.h"
#include "compute/gradient_operations.h"
#include "compute/row_operations.h"

namespace shardrec::compute::cpu {

void locate_gradients(std::span<const GradientBlock> blocks, const Context& context);

void number_occurrences(const SingleOccurrences& rows);

}  // namespace shardrec::compute::cpu
