#include "compute/cuda/kernels/layers/element_updates.h"
#include "compute/cuda/kernels/layers/elements.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {
namespace {

using ElementKernel = void (*)(shardrec_cuda_element_update);

// Null: no parameter has the kind, or it is LAMB.
ElementKernel element_kernel(OptimizerKind kind, bool vectors) {
  switch (kind) {
    case OptimizerKind::kSgd:
      return vectors ? step_each_element<math::Sgd, 4> : step_each_element<math::Sgd, 1>;
    case OptimizerKind::kAdagrad:
      return vectors ? step_each_element<math::Adagrad, 4> : step_each_element<math::Adagrad, 1>;
    case OptimizerKind::kAdam:
      return vectors ? step_each_element<math::Adam, 4> : step_each_element<math::Adam, 1>;
    case OptimizerKind::kMomentumSgd:
      return vectors ? step_each_element<math::MomentumSgd, 4>
                     : step_each_element<math::MomentumSgd, 1>;
    default:
      return nullptr;
  }
}

ElementKernel lamb_kernel(bool vectors) { return vectors ? step_lamb<4> : step_lamb<1>; }

bool all_lists_fit(const shardrec_cuda_element_update& job) {
  return job.count % 4 == 0 && fits_vectors(job.weights) && fits_vectors(job.gradients) &&
         fits_vectors(job.matrices[0]) && fits_vectors(job.matrices[1]);
}

cudaError_t sum_lamb(const shardrec_cuda_element_update& job, CommandList& commands) {
  const int64_t blocks =
      (job.count + SHARDREC_CUDA_ELEMENT_BLOCK - 1) / SHARDREC_CUDA_ELEMENT_BLOCK;
  const cudaError_t error = launch(sum_lamb_blocks, blocks, sizeof(LambTile), commands, job);
  if (error != cudaSuccess) return error;
  return launch(total_lamb_sums, 1, 0, commands, job.sums + 2, blocks, job.sums);
}

}  // namespace

shardrec_cuda_error load_element_updates() {
  for (const bool vectors : {false, true}) {
    for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kAdagrad,
                                     OptimizerKind::kAdam, OptimizerKind::kMomentumSgd}) {
      const cudaError_t error = load(element_kernel(kind, vectors));
      if (error != cudaSuccess) return error;
    }
    const cudaError_t error = load(lamb_kernel(vectors));
    if (error != cudaSuccess) return error;
  }
  const cudaError_t error = load(sum_lamb_blocks);
  return error != cudaSuccess ? error : load(total_lamb_sums);
}

shardrec_cuda_error update_elements(shardrec_cuda_stream* stream,
                                    const shardrec_cuda_element_update* update) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  if (update->count == 0) return cudaSuccess;
  const bool vectors = all_lists_fit(*update);
  const auto kind = static_cast<OptimizerKind>(update->kind);
  ElementKernel kernel = element_kernel(kind, vectors);
  if (kind == OptimizerKind::kLamb) {
    const cudaError_t error = sum_lamb(*update, stream->commands);
    if (error != cudaSuccess) return error;
    kernel = lamb_kernel(vectors);
  }
  if (kernel == nullptr) return cudaErrorInvalidValue;
  const int64_t threads = vectors ? update->count / 4 : update->count;
  return launch(kernel, blocks_for(threads), 0, stream->commands, *update);
}

}  // namespace shardrec::compute::cuda
