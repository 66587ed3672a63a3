// Where memory of devices comes from: CUDA's pools, or what the program has set
// (shardrec_device_set_allocator).
//
// Thread rule: any thread.
#pragma once

#include "compute/cuda/host/stream.h"
#include "shardrec/native.h"

namespace shardrec::compute::cuda::host {

struct Allocator {
  shardrec_device_allocate allocate = nullptr;  // null: CUDA's pools
  shardrec_device_release release = nullptr;
  void* context = nullptr;

  // For what is enqueued in the stream from now on. Throws OUT_OF_MEMORY, DEVICE_ERROR.
  void* get(const Stream& stream, size_t bytes) const;
  void give_back(const Stream& stream, void* memory, size_t bytes) const noexcept;
};

void set_allocator(const Allocator& allocator) noexcept;
Allocator allocator() noexcept;

}  // namespace shardrec::compute::cuda::host
