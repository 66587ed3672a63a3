// Memory that the library holds for a caller (shardrec_memory): of a device, or of the host.
//
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "compute/buffer.h"
#include "compute/cuda/host/stream.h"

namespace shardrec::compute::cuda::host {

class HeldMemory {
 public:
  // Zeros, for any stream. On the CPU it is pinned where the plug-in and a driver are there.
  // Throws UNSUPPORTED (no plug-in), INVALID_ARGUMENT (no such device, bytes < 0), OUT_OF_MEMORY,
  // DEVICE_ERROR.
  HeldMemory(shardrec_device_type type, int32_t device, int64_t bytes);
  // A device's is given back behind what its legacy default stream holds.
  ~HeldMemory();
  HeldMemory(const HeldMemory&) = delete;
  HeldMemory& operator=(const HeldMemory&) = delete;

  // A compact view. Throws INVALID_ARGUMENT: it is not within the memory, or not aligned.
  shardrec_tensor tensor(int64_t offset, shardrec_dtype dtype,
                         std::span<const int64_t> shape) const;

 private:
  shardrec_device_type type_;
  int32_t device_;
  int64_t bytes_;
  std::shared_ptr<Stream> stream_;  // null on the CPU
  std::optional<Event> of_caller_;  // where the legacy default stream was
  std::unique_ptr<Allocation> block_;
};

}  // namespace shardrec::compute::cuda::host
