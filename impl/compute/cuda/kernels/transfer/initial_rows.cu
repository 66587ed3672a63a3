#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"
#include "compute/cuda/kernels/transfer/initial_rows.h"

namespace shardrec::compute::cuda {

shardrec_cuda_error load_initial_rows() { return load(fill_initial_rows); }

// In launches of as many rows as one has blocks for.
shardrec_cuda_error fill_rows(shardrec_cuda_stream* stream,
                              const shardrec_cuda_initial_rows* rows) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  constexpr int64_t kMostThreads = int64_t{1} << 38;
  if (rows->columns == 0) return cudaSuccess;
  const int64_t quads = quads_of(*rows);
  shardrec_cuda_initial_rows piece = *rows;
  const size_t bytes = rows->element == SHARDREC_CUDA_FLOAT32 ? 4 : 2;
  for (int64_t first = 0; first < rows->rows; first += piece.rows) {
    const int64_t left = rows->rows - first;
    const int64_t most = kMostThreads / quads;
    piece.rows = left < most ? left : most;
    piece.first_row = rows->first_row + first;
    piece.data =
        static_cast<unsigned char*>(rows->data) + static_cast<size_t>(first * rows->stride) * bytes;
    const int64_t blocks = (piece.rows * quads + kThreads - 1) / kThreads;
    const cudaError_t error = launch(fill_initial_rows, blocks, 0, stream->commands, piece);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace shardrec::compute::cuda
