// Dropout of dense/kernels.h: a thread for each four elements of the batch that share a counter of Philox. Where rows
// are whole quads that can be moved at once, by for_each_element() (elements.h); else one element after the other.
// Template parameters are the types of what is read and of what is written.
#pragma once

#include "compute/cuda/kernels/layers/matrices.h"

namespace shardrec::compute::cuda {

inline constexpr int kQuad = 4;

struct DropoutWords {
  math::PhiloxCounter words;

  SHARDREC_DEVICE DropoutWords(const shardrec_cuda_dropout& job, int64_t quad)
      : words(math::philox(
            {static_cast<uint32_t>(quad), static_cast<uint32_t>(static_cast<uint64_t>(quad) >> 32),
             job.layer, *global(job.forward)},
            math::philox_key(job.seed))) {}
};

// x of an element whose word is given.
SHARDREC_DEVICE float dropped(const shardrec_cuda_dropout& job, uint32_t word, float x) {
  const float kept = x * job.factor;
  return word < job.threshold ? 0 : kept;
}

template <class In, class Out>
struct DropQuads {
  shardrec_cuda_dropout job;

  template <int kColumns>
  SHARDREC_DEVICE void at(int64_t row, int64_t column) const {
    static_assert(kColumns == kQuad);
    float x[kColumns];
    load_elements<In>(job.x, row, column, x);
    const DropoutWords random(job, (row * job.x.cols + column) / kQuad);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) x[c] = dropped(job, random.words[c], x[c]);
    store_elements<Out>(job.y, row, column, x);
  }
};

template <class In, class Out>
SHARDREC_KERNEL(8)
drop_each_element(shardrec_cuda_dropout job) {
  const int64_t first = grid_thread_index() * kQuad;
  const int64_t end = job.x.rows * job.x.cols;
  if (first >= end) return;
  const DropoutWords random(job, first / kQuad);
  int64_t row = first / job.x.cols;
  int64_t column = first - row * job.x.cols;
#pragma unroll
  for (int i = 0; i < kQuad; ++i) {
    if (first + i >= end) break;
    const float x = In::number(job.x.data, element_index(job.x, row, column));
    Out::put(job.y.data, element_index(job.y, row, column), dropped(job, random.words[i], x));
    if (++column == job.x.cols) {
      column = 0;
      ++row;
    }
  }
}

}  // namespace shardrec::compute::cuda
