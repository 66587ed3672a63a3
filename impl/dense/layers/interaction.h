// The dot interaction of a DLRM (Naumov et al. 2019): the dense vector, then the dot products of
// all pairs of vectors. Samples are independent, so bits do not depend on the number of threads, nor on the device.
// A step allocates nothing. Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "core/memory.h"
#include "core/tensor.h"
#include "core/threads.h"
#include "dense/device/caller_matrices.h"
#include "dense/device/context.h"
#include "dense/kernels.h"

namespace shardrec::dense {

class Interaction {
 public:
  // Throws INVALID_ARGUMENT, OUT_OF_MEMORY, and as device::Context.
  Interaction(int64_t features, int64_t dim, int threads, const device::ContextOptions& place = {});

  int64_t outputs() const noexcept {
    return shape_.dim + (shape_.features + 1) * shape_.features / 2;
  }

  // dense [batch, dim], embeddings [batch, features * dim], output [batch, outputs()]. Both inputs
  // are read again by backward. Throws INVALID_ARGUMENT for shapes; on a device as Mlp::forward().
  void forward(const device::CallerMatrix& dense, const device::CallerMatrix& embeddings,
               const device::CallerMatrix& output);
  void forward(const core::Matrix& dense, const core::Matrix& embeddings,
               const core::Matrix& output) {
    forward({dense, false}, {embeddings, false}, {output, false});
  }

  // The gradients have the inputs' shapes and are overwritten. Throws as forward(), and INVALID_STATE before one.
  void backward(const device::CallerMatrix& output_gradient,
                const device::CallerMatrix& dense_gradient,
                const device::CallerMatrix& embedding_gradient);
  void backward(const core::Matrix& output_gradient, const core::Matrix& dense_gradient,
                const core::Matrix& embedding_gradient) {
    backward({output_gradient, false}, {dense_gradient, false}, {embedding_gradient, false});
  }

  // The devices that callers' matrices may be on.
  core::DeviceSet caller_devices() const noexcept {
    return device_ == nullptr ? core::kHostOnly
                              : core::DeviceSet{.cuda = device_->context.device()};
  }

 private:
  struct OnDevice {
    explicit OnDevice(const device::ContextOptions& place) : context(place) {}

    device::Context context;
    device::HostMatrix dense{context};
    device::HostMatrix embeddings{context};
    device::HostMatrix output{context};
    device::HostMatrix output_gradient{context};
    device::HostMatrix dense_gradient{context};
    device::HostMatrix embedding_gradient{context};
  };

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
  std::unique_ptr<OnDevice> device_;  // null: on the CPU
};

}  // namespace shardrec::dense
