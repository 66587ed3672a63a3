#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/slots/row_totals.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {

shardrec_cuda_error load_row_totals() { return load(add_rows_of_totals); }

shardrec_cuda_error add_row_totals(shardrec_cuda_stream* stream,
                                   const shardrec_cuda_row_totals* job) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(add_rows_of_totals, job->values.count, 0, stream->commands, *job);
}

}  // namespace shardrec::compute::cuda
