// Samples of metrics, packed in the memory of a device until the host takes them.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compute/buffer.h"
#include "compute/cuda/host/memory.h"
#include "dense/auc.h"
#include "dense/device/caller_matrices.h"
#include "dense/device/context.h"

namespace shardrec::dense::device {

class DeviceSamples {
 public:
  // Throws as Context.
  explicit DeviceSamples(const ContextOptions& options);

  int32_t device() const noexcept { return context_.device(); }

  // Vectors of one size, each as a matrix of one row. Enqueues. Throws OUT_OF_MEMORY, and then nothing was added; and as
  // CallerMatrices does.
  void add(const CallerMatrix& probabilities, const CallerMatrix& labels);

  // Samples that wait for move_to().
  int64_t size() const noexcept;

  // Moves all samples behind those of `packed`, and waits. Throws OUT_OF_MEMORY, DEVICE_ERROR; then `packed` is as it
  // was.
  void move_to(std::vector<PackedSample>& packed);

  // The first sample since the last clear() that is none, as far as move_to() has seen.
  struct Wrong {
    int64_t position;
    bool is_label;  // else it is the probability
  };
  std::optional<Wrong> wrong() const noexcept { return wrong_; }

  void clear();

 private:
  // Samples lie in one part after the other. Parts stay, each as large as all before it.
  struct Part {
    compute::Buffer memory;
    int64_t capacity;
    int64_t size;
  };

  uint64_t* wrong_there() noexcept {
    return static_cast<uint64_t*>(static_cast<void*>(wrong_memory_.data()));
  }
  void make_room(int64_t count);
  void clear_wrong();

  Context context_;
  HostMatrix probabilities_{context_};
  HostMatrix labels_{context_};
  compute::Buffer wrong_memory_;
  compute::cuda::host::PinnedMemory wrong_here_;
  compute::cuda::host::PinnedRoom pinned_;  // of move_to()
  std::vector<Part> parts_;
  size_t filling_ = 0;    // the part that the next sample comes to, if it has room
  int64_t position_ = 0;  // of the next sample, since the last clear()
  std::optional<Wrong> wrong_;
};

}  // namespace shardrec::dense::device
