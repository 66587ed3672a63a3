// The memory of an operation's scans over tiles (jobs/scans.h), which is cleared before each operation: after one that
// a failed device has left out, or broken off, there may be anything in it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compute/cuda/jobs/scans.h"

namespace shardrec::compute::cuda::host {

inline constexpr size_t kScanCounts = 2;  // begun and ended

// Of a scan over so many tiles; a multiple of 8.
inline constexpr size_t scan_bytes(int64_t tiles) {
  return kScanCounts * sizeof(uint32_t) +
         static_cast<size_t>(tiles) * sizeof(shardrec_cuda_scan_tile);
}

// A scan whose memory is at `zeros`, 8-byte aligned.
inline shardrec_cuda_scan scan_at(std::byte* zeros) {
  auto* const counts = static_cast<uint32_t*>(static_cast<void*>(zeros));
  return {.begun = counts,
          .ended = counts + 1,
          .tiles = static_cast<shardrec_cuda_scan_tile*>(static_cast<void*>(counts + kScanCounts))};
}

}  // namespace shardrec::compute::cuda::host
