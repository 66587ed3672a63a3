// What the environment variable SHARDREC_CPU_TARGET asks for.
#pragma once

namespace shardrec::compute {

// Throws INVALID_ARGUMENT, naming the variable and what this machine accepts, when the variable
// names no instruction set that it has. Read once, with the first call of this or cpu_kernels().
// For everything that is about to use kernels: cpu_kernels() itself never fails. Any thread.
void require_cpu_target();

}  // namespace shardrec::compute
