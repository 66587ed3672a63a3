// Layers as a device computes them: what forward.h and backward.h do with a tile of rows, for all rows of the batch at
// once. Matrix products are cuBLASLt's (device/gemm.h); what is between them has the bits of the CPU
// (device/kernels.h).
//
// All matrices and parameters are memory of the device. Functions enqueue, and throw DEVICE_ERROR, OUT_OF_MEMORY.
// Thread rule: that of the stream.
#pragma once

#include "compute/cuda/host/stream.h"
#include "dense/device/gemm.h"
#include "dense/device/kernels.h"
#include "dense/layers/backward.h"
#include "dense/layers/forward.h"
#include "dense/layers/weight_gradients.h"

namespace shardrec::dense {

struct DeviceOperations {
  compute::cuda::host::Stream& stream;
  device::Gemm& gemm;
};

void forward_layer(const DeviceOperations& on, const LayerValues& layer, const ForwardRows& rows);

// sums: of the parameters that are vectors; BackwardRows::column_sums is not read.
void backward_layer(const DeviceOperations& on, const LayerValues& layer, const BackwardRows& rows,
                    const device::TileSums& sums);

// accumulate: the gradient is computed in the partials, and added.
void add_weight_gradient(const DeviceOperations& on, const WeightGradient& gradient,
                         bool accumulate);

}  // namespace shardrec::dense
