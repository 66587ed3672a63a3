// The functions of the table that hand calls of the CUDA runtime on (cuda_plugin.h).
#pragma once

#include "compute/cuda/jobs/cuda_plugin.h"

namespace shardrec::compute::cuda {

// Fills in every function of the table but the operations.
void add_runtime(shardrec_cuda_table& table);

}  // namespace shardrec::compute::cuda
