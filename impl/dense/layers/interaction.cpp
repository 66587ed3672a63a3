#include "dense/layers/interaction.h"

#include <algorithm>

#include "core/error.h"
#include "dense/device/kernels.h"
#include "dense/layers/forward.h"

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

}  // namespace

Interaction::Interaction(int64_t features, int64_t dim, int threads,
                         const device::ContextOptions& place)
    : shape_{features, dim}, threads_(threads) {
  require("features", features, 0, kLargestFeatures);
  require("dim", dim, 1, kLargestDim);
  if (place.device >= 0) {
    device_ = std::make_unique<OnDevice>(place);
    return;
  }
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

void Interaction::forward(const device::CallerMatrix& dense, const device::CallerMatrix& embeddings,
                          const device::CallerMatrix& output) {
  const int64_t batch = dense.rows.rows;
  require_shape(dense.rows, "dense", batch, shape_.dim);
  require_shape(embeddings.rows, "embeddings", batch, shape_.features * shape_.dim);
  require_shape(output.rows, "output", batch, outputs());
  has_forward_ = false;
  if (device_ != nullptr) {
    device::CallerMatrices given(device_->context);
    dense_ = given.read(dense, device_->dense);
    embeddings_ = given.read(embeddings, device_->embeddings);
    device::interaction_forward(device_->context.stream(), shape_, dense_, embeddings_,
                                given.write(output, device_->output));
    given.done();
    has_forward_ = true;
    return;
  }
  dense_ = dense.rows;
  embeddings_ = embeddings.rows;
  has_forward_ = true;
  const auto kernel = kernels().interaction_forward;
  for_samples(batch, [&](int64_t sample, float* scratch) {
    kernel(shape_, dense_.row(sample), embeddings_.row(sample), output.rows.row(sample), scratch);
  });
}

void Interaction::backward(const device::CallerMatrix& output_gradient,
                           const device::CallerMatrix& dense_gradient,
                           const device::CallerMatrix& embedding_gradient) {
  if (!has_forward_) {
    core::fail(SHARDREC_INVALID_STATE, "backward was called without a forward before it");
  }
  require_shape(output_gradient.rows, "output_gradient", dense_.rows, outputs());
  require_shape(dense_gradient.rows, "dense_gradient", dense_.rows, shape_.dim);
  require_shape(embedding_gradient.rows, "embedding_gradient", dense_.rows,
                shape_.features * shape_.dim);
  if (device_ != nullptr) {
    device::CallerMatrices given(device_->context);
    const device::InteractionGradients gradients{
        .out = given.read(output_gradient, device_->output_gradient),
        .dense = given.write(dense_gradient, device_->dense_gradient),
        .embeddings = given.write(embedding_gradient, device_->embedding_gradient)};
    device::interaction_backward(device_->context.stream(), shape_, dense_, embeddings_, gradients);
    given.done();
    return;
  }
  const auto kernel = kernels().interaction_backward;
  for_samples(dense_.rows, [&](int64_t sample, float* scratch) {
    kernel(shape_, dense_.row(sample), embeddings_.row(sample), output_gradient.rows.row(sample),
           dense_gradient.rows.row(sample), embedding_gradient.rows.row(sample), scratch);
  });
}

}  // namespace shardrec::dense
