// Which set of kernels is in use: one switch for tables, layers and the probe.
//
// Thread rule: any thread.
#pragma once

#include "compute/kernels.h"

namespace shardrec::compute {

// The CPU kernels in use: the best instruction set of this machine, or what the environment variable
// SHARDREC_CPU_TARGET names (read once). Never fails: a name that there is not means the best one, and is
// refused by require_cpu_target().
const Kernels& cpu_kernels();

// Throws INVALID_ARGUMENT, naming the variable and what this machine accepts, when SHARDREC_CPU_TARGET names no
// instruction set that it has. For everything that is about to use kernels.
void require_cpu_target();

// All sets that this machine can run, best last. For tests and capabilities.
int cpu_kernel_count();
const Kernels& cpu_kernels_at(int index);

// Use this set from now on (null: the first choice again). Not while other threads compute.
void force_cpu_kernels(const Kernels* kernels);

}  // namespace shardrec::compute
