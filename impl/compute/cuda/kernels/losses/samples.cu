#include "compute/cuda/kernels/commands.h"
#include "compute/cuda/kernels/losses/samples.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {

shardrec_cuda_error load_samples() { return load(pack_each_sample); }

shardrec_cuda_error pack_samples(shardrec_cuda_stream* stream,
                                 const shardrec_cuda_samples* samples) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(pack_each_sample, blocks_for(samples->count), 0, stream->commands, *samples);
}

}  // namespace shardrec::compute::cuda
