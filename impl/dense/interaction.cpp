#include "dense/interaction.h"

#include <algorithm>

#include "core/error.h"

namespace shardrec::dense {
namespace {

constexpr int64_t kLargestFeatures = 65536;
constexpr int64_t kLargestDim = 65536;

void require(const char* name, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return;
  core::fail(SHARDREC_INVALID_ARGUMENT,
             core::sentence("an interaction cannot have ", name, " ", value, "; ", least, " .. ",
                            most, " is accepted"),
             {.value = value, .limit = most + 1});
}

void require_shape(const core::Matrix& matrix, const char* name, int64_t rows, int64_t cols) {
  if (matrix.rows == rows && matrix.cols == cols) return;
  core::fail(SHARDREC_INVALID_ARGUMENT,
             core::sentence(name, " has shape [", matrix.rows, ", ", matrix.cols, "]; [", rows,
                            ", ", cols, "] is accepted"));
}

}  // namespace

Interaction::Interaction(int64_t features, int64_t dim, int threads)
    : shape_{features, dim}, threads_(threads) {
  require("features", features, 0, kLargestFeatures);
  require("dim", dim, 1, kLargestDim);
  // More pieces than threads, so that a thread that is late holds up little.
  slots_ = int64_t{threads} * 4;
  slot_floats_ = static_cast<int64_t>((interaction_scratch(shape_) + 15) / 16 * 16);
  scratch_.resize_as<float>(static_cast<size_t>(slots_ * slot_floats_));
}

template <class Body>
void Interaction::for_samples(int64_t batch, const Body& body) {
  const int64_t slots = std::min(slots_, batch);
  float* const scratch = static_cast<float*>(static_cast<void*>(scratch_.data()));
  threads_.parallel_for(slots, 1, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot) {
      float* const own = scratch + slot * slot_floats_;
      const int64_t last = batch * (slot + 1) / slots;
      for (int64_t sample = batch * slot / slots; sample < last; ++sample) body(sample, own);
    }
  });
}

void Interaction::forward(const core::Matrix& dense, const core::Matrix& embeddings,
                          const core::Matrix& output) {
  require_shape(dense, "dense", dense.rows, shape_.dim);
  require_shape(embeddings, "embeddings", dense.rows, shape_.features * shape_.dim);
  require_shape(output, "output", dense.rows, outputs());
  dense_ = dense;
  embeddings_ = embeddings;
  has_forward_ = true;
  const auto kernel = kernels().interaction_forward;
  for_samples(dense.rows, [&](int64_t sample, float* scratch) {
    kernel(shape_, dense.row(sample), embeddings.row(sample), output.row(sample), scratch);
  });
}

void Interaction::backward(const core::Matrix& output_gradient, const core::Matrix& dense_gradient,
                           const core::Matrix& embedding_gradient) {
  if (!has_forward_) {
    core::fail(SHARDREC_INVALID_STATE, "backward was called without a forward before it");
  }
  require_shape(output_gradient, "output_gradient", dense_.rows, outputs());
  require_shape(dense_gradient, "dense_gradient", dense_.rows, shape_.dim);
  require_shape(embedding_gradient, "embedding_gradient", dense_.rows,
                shape_.features * shape_.dim);
  const auto kernel = kernels().interaction_backward;
  for_samples(dense_.rows, [&](int64_t sample, float* scratch) {
    kernel(shape_, dense_.row(sample), embeddings_.row(sample), output_gradient.row(sample),
           dense_gradient.row(sample), embedding_gradient.row(sample), scratch);
  });
}

}  // namespace shardrec::dense
