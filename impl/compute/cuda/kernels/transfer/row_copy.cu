#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"
#include "compute/cuda/kernels/transfer/row_copy.h"

namespace shardrec::compute::cuda {
namespace {

// Enough threads to fill any device; each takes as many units as there are.
constexpr int64_t kMostBlocksOfRows = 1 << 14;

template <class Unit>
bool fits(const shardrec_cuda_row_copy& job) {
  const auto all = reinterpret_cast<uintptr_t>(job.from) | reinterpret_cast<uintptr_t>(job.to) |
                   static_cast<uintptr_t>(job.from_stride) | static_cast<uintptr_t>(job.to_stride) |
                   static_cast<uintptr_t>(job.row_bytes);
  return all % sizeof(Unit) == 0;
}

template <class Unit>
cudaError_t copy_in(const shardrec_cuda_row_copy& job, CommandList& commands) {
  const int64_t blocks =
      blocks_for(job.rows * (job.row_bytes / static_cast<int64_t>(sizeof(Unit))));
  return launch(copy_rows_in_units<Unit>, blocks < kMostBlocksOfRows ? blocks : kMostBlocksOfRows,
                0, commands, job);
}

}  // namespace

shardrec_cuda_error load_row_copies() {
  cudaError_t error = load(copy_rows_in_units<uint4>);
  if (error == cudaSuccess) error = load(copy_rows_in_units<uint32_t>);
  return error != cudaSuccess ? error : load(copy_rows_in_units<uint16_t>);
}

shardrec_cuda_error copy_rows(shardrec_cuda_stream* stream, const shardrec_cuda_row_copy* rows) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  if (fits<uint4>(*rows)) return copy_in<uint4>(*rows, stream->commands);
  if (fits<uint32_t>(*rows)) return copy_in<uint32_t>(*rows, stream->commands);
  return copy_in<uint16_t>(*rows, stream->commands);
}

}  // namespace shardrec::compute::cuda
