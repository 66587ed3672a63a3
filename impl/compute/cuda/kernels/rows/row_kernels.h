// The kernels on touched rows (row_update.h, row_norms.h, row_gradients.h), a file for some of them each.
#pragma once

#include "compute/cuda/jobs/cuda_plugin.h"
#include "compute/cuda/kernels/device.h"

namespace shardrec::compute::cuda {

// Works on jobs of one kind. first_block: [count + 1], the blocks of threads of the jobs before each.
struct RowKernel {
  void (*function)(const shardrec_cuda_row_job* jobs, const int64_t* first_block, int32_t count);
  size_t shared_bytes;
};

RowKernel sgd_kernel(const shardrec_cuda_row_kind& kind);
RowKernel adagrad_kernel(const shardrec_cuda_row_kind& kind);
RowKernel rowwise_adagrad_kernel(const shardrec_cuda_row_kind& kind);
RowKernel adam_kernel(const shardrec_cuda_row_kind& kind);
RowKernel partial_rowwise_adam_kernel(const shardrec_cuda_row_kind& kind);
RowKernel lamb_kernel(const shardrec_cuda_row_kind& kind);
RowKernel partial_rowwise_lamb_kernel(const shardrec_cuda_row_kind& kind);
RowKernel lars_sgd_kernel(const shardrec_cuda_row_kind& kind);
RowKernel row_gradient_kernel(const shardrec_cuda_row_kind& kind);
RowKernel row_norm_kernel(const shardrec_cuda_row_kind& kind);
RowKernel row_rescale_kernel(const shardrec_cuda_row_kind& kind);

}  // namespace shardrec::compute::cuda
