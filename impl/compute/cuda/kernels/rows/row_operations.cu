#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/rows/row_guard.h"
#include "compute/cuda/kernels/rows/row_kernels.h"
#include "compute/cuda/kernels/rows/row_opening.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {
namespace {

// Of the grid that sums blocks of hot rows, of which only the device knows how many there are.
constexpr int64_t kHotBlocks = 1024;

using UpdateKernel = RowKernel (*)(const shardrec_cuda_row_kind& kind);
#define SHARDREC_UPDATE(Step) row_update_kernel<OptimizerKind::k##Step>,
constexpr UpdateKernel kUpdateKernels[kRowOptimizerKinds] = {
    SHARDREC_ROW_OPTIMIZERS(SHARDREC_UPDATE)};
#undef SHARDREC_UPDATE

RowKernel kernel_of(const shardrec_cuda_row_kind& kind) {
  switch (kind.operation) {
    case SHARDREC_CUDA_ROW_GRADIENTS:
      return row_gradient_kernel(kind);
    case SHARDREC_CUDA_ROW_NORMS:
      return row_norm_kernel(kind);
    case SHARDREC_CUDA_ROW_RESCALE:
      return row_rescale_kernel(kind);
    default:
      return kUpdateKernels[kind.optimizer](kind);
  }
}

cudaError_t load_kind(shardrec_cuda_row_kind kind) {
  cudaError_t error = cudaSuccess;
  const auto load_it = [&] {
    if (error == cudaSuccess) error = load(kernel_of(kind).function);
  };
  for (kind.wide = 0; kind.wide < 2; ++kind.wide) {
    kind.vectors = 0;
    load_it();
    kind.vectors = 1;
    for (const int32_t element :
         {SHARDREC_CUDA_FLOAT32, SHARDREC_CUDA_FLOAT16, SHARDREC_CUDA_BFLOAT16}) {
      kind.element = element;
      load_it();
    }
  }
  return error;
}

}  // namespace

shardrec_cuda_error load_row_operations() {
  cudaError_t error = load(open_touched_rows);
  if (error == cudaSuccess) error = load(sum_hot_blocks);
  if (error == cudaSuccess) error = load(count_guarded_rows);
  for (const int32_t operation :
       {SHARDREC_CUDA_ROW_GRADIENTS, SHARDREC_CUDA_ROW_NORMS, SHARDREC_CUDA_ROW_RESCALE}) {
    if (error == cudaSuccess) error = load_kind({.operation = operation});
  }
  for (size_t optimizer = 0; optimizer < kRowOptimizerKinds; ++optimizer) {
    if (error == cudaSuccess) {
      error = load_kind(
          {.operation = SHARDREC_CUDA_ROW_UPDATE, .optimizer = static_cast<int32_t>(optimizer)});
    }
  }
  return error;
}

shardrec_cuda_error open_rows(shardrec_cuda_stream* stream,
                              const shardrec_cuda_row_opening* opening) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  const int64_t blocks = opening->located.tiles.count + opening->blocks;
  const cudaError_t error = launch(open_touched_rows, blocks, 0, stream->commands, *opening);
  if (error != cudaSuccess || opening->most_hot_rows == 0) return error;
  return launch(sum_hot_blocks, kHotBlocks, 0, stream->commands, *opening);
}

shardrec_cuda_error guard_rows(shardrec_cuda_stream* stream, const shardrec_cuda_row_guard* guard) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(count_guarded_rows, guard->shards == 0 ? 0 : 1, sizeof(uint64_t), stream->commands,
                *guard);
}

shardrec_cuda_error work_on_rows(shardrec_cuda_stream* stream, const shardrec_cuda_row_kind* kind,
                                 const shardrec_cuda_row_job* jobs, const int64_t* first_block,
                                 int32_t count, int64_t blocks) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  const RowKernel kernel = kernel_of(*kind);
  if (kind->operation == SHARDREC_CUDA_ROW_UPDATE) stream->commands.note_change();
  return launch(kernel.function, blocks, kernel.shared_bytes, stream->commands, jobs, first_block,
                count);
}

}  // namespace shardrec::compute::cuda
