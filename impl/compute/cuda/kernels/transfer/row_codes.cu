#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"
#include "compute/cuda/kernels/transfer/row_codes.h"

namespace shardrec::compute::cuda {
namespace {

using Encoder = void (*)(const shardrec_cuda_row_encoding*, const int64_t*, int32_t);
using Decoder = void (*)(const shardrec_cuda_row_decoding*, const int64_t*, int32_t);

Encoder encoder_of(const shardrec_cuda_row_coding_kind& kind) {
  if (kind.boxed != 0) return kind.vectors != 0 ? encode_boxes<4> : encode_boxes<1>;
  return kind.vectors != 0 ? narrow_rows<4> : narrow_rows<1>;
}

Decoder decoder_of(const shardrec_cuda_row_coding_kind& kind) {
  if (kind.boxed != 0) return kind.vectors != 0 ? decode_boxes<4> : decode_boxes<1>;
  return kind.vectors != 0 ? widen_rows<4> : widen_rows<1>;
}

}  // namespace

shardrec_cuda_error load_row_codes() {
  for (const int32_t boxed : {0, 1}) {
    for (const int32_t vectors : {0, 1}) {
      cudaError_t error = load(encoder_of({boxed, vectors}));
      if (error == cudaSuccess) error = load(decoder_of({boxed, vectors}));
      if (error != cudaSuccess) return error;
    }
  }
  return cudaSuccess;
}

shardrec_cuda_error encode_rows(shardrec_cuda_stream* stream,
                                const shardrec_cuda_row_coding_kind* kind,
                                const shardrec_cuda_row_encoding* jobs, const int64_t* first_block,
                                int32_t count, int64_t blocks) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(encoder_of(*kind), blocks, 0, stream->commands, jobs, first_block, count);
}

shardrec_cuda_error decode_rows(shardrec_cuda_stream* stream,
                                const shardrec_cuda_row_coding_kind* kind,
                                const shardrec_cuda_row_decoding* jobs, const int64_t* first_block,
                                int32_t count, int64_t blocks) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(decoder_of(*kind), blocks, 0, stream->commands, jobs, first_block, count);
}

}  // namespace shardrec::compute::cuda
