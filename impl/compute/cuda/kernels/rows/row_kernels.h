// The kernels on touched rows (row_update.h, row_norms.h, row_gradients.h), a file for some of them each.
#pragma once

#include "compute/cuda/jobs/cuda_plugin.h"
#include "compute/cuda/kernels/device.h"
#include "compute/optimizer.h"

namespace shardrec::compute::cuda {

// Works on jobs of one kind. first_block: [count + 1], the blocks of threads of the jobs before each.
struct RowKernel {
  void (*function)(const shardrec_cuda_row_job* jobs, const int64_t* first_block, int32_t count);
  size_t shared_bytes;
};

// The step of an optimizer. Each is compiled in one of row_update_*.cu.
template <OptimizerKind kKind>
RowKernel row_update_kernel(const shardrec_cuda_row_kind& kind);
#define SHARDREC_DECLARE(Step) \
  template <>                  \
  RowKernel row_update_kernel<OptimizerKind::k##Step>(const shardrec_cuda_row_kind& kind);
SHARDREC_ROW_OPTIMIZERS(SHARDREC_DECLARE)
#undef SHARDREC_DECLARE

RowKernel row_gradient_kernel(const shardrec_cuda_row_kind& kind);
RowKernel row_norm_kernel(const shardrec_cuda_row_kind& kind);
RowKernel row_rescale_kernel(const shardrec_cuda_row_kind& kind);

}  // namespace shardrec::compute::cuda
