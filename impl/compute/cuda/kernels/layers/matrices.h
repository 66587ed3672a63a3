// What for_each_element() (elements.h) does to matrices of the same shape; formulas: dense/kernels.h. Each operation
// rounds once: kernels are compiled without contraction. Template parameters are the types of the matrices.
#pragma once

#include "compute/cuda/jobs/scaling.h"
#include "compute/cuda/kernels/layers/elements.h"

namespace shardrec::compute::cuda {

template <class Elements, int kColumns>
SHARDREC_DEVICE void load_elements(const shardrec_cuda_matrix& matrix, int64_t row, int64_t column,
                                   float (&x)[kColumns]) {
  Elements::load(matrix.data, element_index(matrix, row, column), x);
}
template <class Elements, int kColumns>
SHARDREC_DEVICE void store_elements(const shardrec_cuda_matrix& matrix, int64_t row, int64_t column,
                                    const float (&x)[kColumns]) {
  Elements::store(matrix.data, element_index(matrix, row, column), x);
}

template <class Elements>
struct AddBias {
  shardrec_cuda_bias job;

  template <int kColumns>
  SHARDREC_DEVICE void at(int64_t row, int64_t column) const {
    float y[kColumns], bias[kColumns];
    load_elements<Elements>(job.y, row, column, y);
    LaneFloats<kColumns>::load(job.bias + column, bias);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const float sum = y[c] + bias[c];
      y[c] = job.relu != 0 && sum < 0 ? 0 : sum;
    }
    store_elements<Elements>(job.y, row, column, y);
  }
};

template <class Gradients, class Outputs>
struct MaskGradients {
  shardrec_cuda_relu_gradient job;

  template <int kColumns>
  SHARDREC_DEVICE void at(int64_t row, int64_t column) const {
    float y[kColumns], gradient[kColumns];
    load_elements<Outputs>(job.y, row, column, y);
    load_elements<Gradients>(job.dy, row, column, gradient);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) gradient[c] = y[c] <= 0 ? 0 : gradient[c];
    store_elements<Gradients>(job.dz, row, column, gradient);
  }
};

template <class Added, class Sum>
struct AddMatrix {
  shardrec_cuda_addition job;

  template <int kColumns>
  SHARDREC_DEVICE void at(int64_t row, int64_t column) const {
    float x[kColumns], sum[kColumns];
    load_elements<Added>(job.x, row, column, x);
    load_elements<Sum>(job.sum, row, column, sum);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) sum[c] += x[c];
    store_elements<Sum>(job.sum, row, column, sum);
  }
};

template <class From, class To>
struct ConvertMatrix {
  shardrec_cuda_conversion job;

  template <int kColumns>
  SHARDREC_DEVICE void at(int64_t row, int64_t column) const {
    float x[kColumns];
    load_elements<From>(job.x, row, column, x);
    if (job.loss_scale != nullptr) {
      const float scale = global(job.loss_scale)->scale;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) x[c] *= scale;
    }
    store_elements<To>(job.y, row, column, x);
  }
};

struct FillNumbers {
  shardrec_cuda_filling job;

  template <int kColumns>
  SHARDREC_DEVICE void at(int64_t row, int64_t column) const {
    float x[kColumns];
    if (job.multiplies != 0) {
      load_elements<Float32Elements>(job.x, row, column, x);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) x[c] *= job.number;
    } else {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) x[c] = job.number;
    }
    store_elements<Float32Elements>(job.x, row, column, x);
  }
};

template <class Elements, class Outputs>
struct CrossRows {
  shardrec_cuda_cross job;

  template <int kColumns>
  SHARDREC_DEVICE void at(int64_t row, int64_t column) const {
    float origin[kColumns], x[kColumns], product[kColumns], bias[kColumns], y[kColumns];
    load_elements<Elements>(job.origin, row, column, origin);
    load_elements<Elements>(job.x, row, column, x);
    load_elements<Elements>(job.product, row, column, product);
    LaneFloats<kColumns>::load(job.bias + column, bias);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      product[c] += bias[c];
      y[c] = origin[c] * product[c] + x[c];
    }
    store_elements<Elements>(job.product, row, column, product);
    store_elements<Outputs>(job.y, row, column, y);
  }
};

template <class Elements>
struct CrossGradients {
  shardrec_cuda_cross_gradient job;

  template <int kColumns>
  SHARDREC_DEVICE void at(int64_t row, int64_t column) const {
    float gradient[kColumns], factor[kColumns], out[kColumns];
    load_elements<Elements>(job.dy, row, column, gradient);
    load_elements<Elements>(job.origin, row, column, factor);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) out[c] = gradient[c] * factor[c];
    if (job.sum.data != nullptr) {
      float sum[kColumns];
      load_elements<Elements>(job.product, row, column, factor);
      if (job.starts == 0) load_elements<Float32Elements>(job.sum, row, column, sum);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        const float part = gradient[c] * factor[c];
        sum[c] = job.starts != 0 ? part : sum[c] + part;
      }
      store_elements<Float32Elements>(job.sum, row, column, sum);
    }
    store_elements<Elements>(job.dz, row, column, out);
  }
};

}  // namespace shardrec::compute::cuda
