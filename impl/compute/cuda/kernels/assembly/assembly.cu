#include "compute/cuda/kernels/assembly/assembly.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {

shardrec_cuda_error load_assembly() {
  for (const auto kernel : {add_rows<1>, add_rows<4>}) {
    const cudaError_t error = load(kernel);
    if (error != cudaSuccess) return error;
  }
  for (const auto kernel : {find_sources, copy_sources<1>, copy_sources<4>}) {
    const cudaError_t error = load(kernel);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

shardrec_cuda_error add_up_rows(shardrec_cuda_stream* stream, int32_t vectors,
                                const shardrec_cuda_row_sum* jobs, const int64_t* first_block,
                                int32_t count, int64_t blocks) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(vectors != 0 ? add_rows<4> : add_rows<1>, blocks, 0, stream->commands, jobs,
                first_block, count);
}

shardrec_cuda_error find_sequence_rows(shardrec_cuda_stream* stream,
                                       const shardrec_cuda_sequence* jobs,
                                       const int64_t* first_chunk, int32_t count, int64_t chunks) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(find_sources, blocks_for(chunks * kWarp), 0, stream->commands, jobs, first_chunk,
                count);
}

shardrec_cuda_error copy_sequence_rows(shardrec_cuda_stream* stream, int32_t vectors,
                                       const shardrec_cuda_sequence* jobs,
                                       const int64_t* first_block, int32_t count, int64_t blocks) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(vectors != 0 ? copy_sources<4> : copy_sources<1>, blocks, 0, stream->commands, jobs,
                first_block, count);
}

}  // namespace shardrec::compute::cuda
