// The index of a slot (compute::SlotShape), as kernels read it.
#pragma once

#include "compute/cuda/jobs/slots.h"
#include "compute/cuda/kernels/tiles.h"

namespace shardrec::compute::cuda {

inline constexpr int64_t kWordRows = 64;  // compute::kSlotGrain

SHARDREC_DEVICE const uint64_t* words_of(const shardrec_cuda_slot& slot) {
  return static_cast<const uint64_t*>(slot.index);
}
SHARDREC_DEVICE const uint32_t* list_of(const shardrec_cuda_slot& slot) {
  return static_cast<const uint32_t*>(slot.index);
}
__host__ SHARDREC_DEVICE int64_t words_of_bits(const shardrec_cuda_slot& slot) {
  return (slot.rows + kWordRows - 1) / kWordRows;
}
// Words of 8 bytes of an index (compute::slot_index_bytes).
SHARDREC_DEVICE int64_t index_words(const shardrec_cuda_slot& slot) {
  return slot.bits != 0 ? words_of_bits(slot) : (slot.count + 1) / 2;
}

// Adds the numbers of the lanes of a warp to a sum. All lanes call it.
SHARDREC_DEVICE void add_of_warp(unsigned long long* sum, unsigned long long number) {
  const unsigned long long total = sum_of_lanes_up_to_this(number);
  if (lane_index() == kWarp - 1 && total != 0) atomicAdd(sum, total);
}

}  // namespace shardrec::compute::cuda
