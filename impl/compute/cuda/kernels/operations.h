// The operations of the table (cuda_plugin.h), and what loads their kernels onto the current device: one that is
// loaded when it is first started may wait for what runs there. A family's are in the folder of its name.
#pragma once

#include "compute/cuda/jobs/cuda_plugin.h"

namespace shardrec::compute::cuda {

shardrec_cuda_error load_kernels();  // all

#define SHARDREC_CUDA_LOADERS(LOADER)     \
  SHARDREC_CUDA_BAGS_LOADERS(LOADER)      \
  SHARDREC_CUDA_TRANSFER_LOADERS(LOADER)  \
  SHARDREC_CUDA_ROUTING_LOADERS(LOADER)   \
  SHARDREC_CUDA_LOOKUP_LOADERS(LOADER)    \
  SHARDREC_CUDA_ASSEMBLY_LOADERS(LOADER)  \
  SHARDREC_CUDA_GRADIENTS_LOADERS(LOADER) \
  SHARDREC_CUDA_ROWS_LOADERS(LOADER)      \
  SHARDREC_CUDA_SLOTS_LOADERS(LOADER)     \
  SHARDREC_CUDA_LAYERS_LOADERS(LOADER)    \
  SHARDREC_CUDA_BUCKETS_LOADERS(LOADER)   \
  SHARDREC_CUDA_LOSSES_LOADERS(LOADER)    \
  SHARDREC_CUDA_SCALING_LOADERS(LOADER)   \
  SHARDREC_CUDA_GIVEN_NUMBERS_LOADERS(LOADER)

#define SHARDREC_CUDA_DECLARE(name, ...) \
  shardrec_cuda_error name(shardrec_cuda_stream* stream, __VA_ARGS__);
SHARDREC_CUDA_OPERATIONS(SHARDREC_CUDA_DECLARE)
#undef SHARDREC_CUDA_DECLARE

#define SHARDREC_CUDA_DECLARE(name) shardrec_cuda_error name();
SHARDREC_CUDA_LOADERS(SHARDREC_CUDA_DECLARE)
#undef SHARDREC_CUDA_DECLARE

}  // namespace shardrec::compute::cuda
