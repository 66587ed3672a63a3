// Layers as a device computes them: what forward.h and backward.h do with a tile of rows, for all rows of the batch at
// once. Matrix products are cuBLASLt's (device/gemm.h); what is between them has the bits of the CPU
// (device/kernels.h).
//
// All matrices and parameters are memory of the device. Functions enqueue, and throw DEVICE_ERROR, OUT_OF_MEMORY.
// Thread rule: that of the stream.
#pragma once

#include <array>

#include "compute/cuda/host/stream.h"
#include "dense/device/gemm.h"
#include "dense/device/kernels.h"
#include "dense/element_matrix.h"
#include "dense/layers/backward.h"
#include "dense/layers/forward.h"
#include "dense/layers/weight_gradients.h"

namespace shardrec::dense {

struct DeviceOperations {
  compute::cuda::host::Stream& stream;
  device::Gemm& gemm;
  device::Multiplier multiplier = device::Multiplier::kExact;  // of matrices of floats
  const uint32_t* forward = nullptr;  // of dropout masks: its number, a word of the device
  // What gradients of parameters, as layers compute them, are divided by; null: nothing.
  shardrec_cuda_loss_scale* loss_scale = nullptr;
};

// A layer with its parameters, and what it multiplies by: its weight matrices, or copies of them in 16 bits.
struct DeviceLayer {
  LayerValues values;
  std::array<ElementMatrix, kRoles> weights;  // null where it has none of that role

  const ElementMatrix& weight(Role role) const noexcept {
    return weights[static_cast<size_t>(role)];
  }
};

// Rows of floats, or of 16 bits where capi's layers.h has it. WrittenRounding is not read: the types of the matrices
// say it.
using DeviceForwardRows = ForwardRowsOf<ElementMatrix>;
using DeviceBackwardRows = BackwardRowsOf<ElementMatrix>;

void forward_layer(const DeviceOperations& on, const DeviceLayer& layer,
                   const DeviceForwardRows& rows);

// sums: of the parameters that are vectors; BackwardRows::column_sums is not read.
void backward_layer(const DeviceOperations& on, const DeviceLayer& layer,
                    const DeviceBackwardRows& rows, const device::TileSums& sums);

// accumulate: the gradient is computed in the partials, divided by the loss scale, and added.
void add_weight_gradient(const DeviceOperations& on, const WeightGradient& gradient,
                         bool accumulate);

}  // namespace shardrec::dense
