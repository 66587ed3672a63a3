// The dot interaction of a DLRM (Naumov et al. 2019): the dense vector, then the dot products of
// all pairs of vectors. Samples are independent, so bits do not depend on the number of threads. A
// step allocates nothing. Thread rule: one thread at a time.
#pragma once

#include <cstdint>

#include "core/memory.h"
#include "core/tensor.h"
#include "core/threads.h"
#include "dense/kernels.h"

namespace shardrec::dense {

class Interaction {
 public:
  // Throws INVALID_ARGUMENT, OUT_OF_MEMORY.
  Interaction(int64_t features, int64_t dim, int threads);

  int64_t outputs() const noexcept {
    return shape_.dim + (shape_.features + 1) * shape_.features / 2;
  }

  // dense [batch, dim], embeddings [batch, features * dim], output [batch, outputs()]. Both inputs
  // are read again by backward. Throws INVALID_ARGUMENT for shapes.
  void forward(const core::Matrix& dense, const core::Matrix& embeddings,
               const core::Matrix& output);

  // The gradients have the inputs' shapes and are overwritten. Throws INVALID_ARGUMENT,
  // INVALID_STATE before a forward.
  void backward(const core::Matrix& output_gradient, const core::Matrix& dense_gradient,
                const core::Matrix& embedding_gradient);

 private:
  template <class Body>
  void for_samples(int64_t batch, const Body& body);

  InteractionShape shape_;
  core::Threads threads_;
  core::Scratch scratch_;
  int64_t slots_ = 0;  // the batch is cut into so many, each with scratch of its own
  int64_t slot_floats_ = 0;
  core::Matrix dense_;  // of the last forward
  core::Matrix embeddings_;
  bool has_forward_ = false;
};

}  // namespace shardrec::dense
