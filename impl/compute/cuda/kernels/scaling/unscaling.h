// What for_each_element() (elements.h) does to gradients that carry a loss scale.
#pragma once

#include "compute/cuda/kernels/layers/elements.h"
#include "compute/cuda/kernels/layers/matrices.h"
#include "compute/cuda/kernels/layers/scaled.h"

namespace shardrec::compute::cuda {

struct UnscaleMatrix {
  shardrec_cuda_unscaling job;

  template <int kColumns>
  SHARDREC_DEVICE void at(int64_t row, int64_t column) const {
    float x[kColumns], y[kColumns] = {};
    load_elements<Float32Elements>(job.x, row, column, x);
    if (job.accumulate != 0) load_elements<Float32Elements>(job.y, row, column, y);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const float part = unscaled(job.loss_scale, x[c]);
      y[c] = job.accumulate != 0 ? y[c] + part : part;
    }
    store_elements<Float32Elements>(job.y, row, column, y);
  }
};

struct InspectNumbers {
  shardrec_cuda_inspection job;

  template <int kColumns>
  SHARDREC_DEVICE void at(int64_t /*row*/, int64_t column) const {
    float x[kColumns];
    LaneFloats<kColumns>::load(job.numbers + column, x);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) tell_if_not_finite(job.loss_scale, x[c]);
  }
};

}  // namespace shardrec::compute::cuda
