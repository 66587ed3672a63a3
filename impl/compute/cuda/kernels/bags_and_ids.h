// Numbers of bags and of their ids that are added up as one number: bags that are not empty above 2^32,
// ids below. Sums over blocks may wrap: the difference inside a block, which has fewer than 2^32 of
// each, does not.
#pragma once

#include "compute/cuda/kernels/device.h"

namespace shardrec::compute::cuda {

SHARDREC_DEVICE uint64_t bag_with_ids(uint32_t length) {
  return length == 0 ? 0 : (uint64_t{1} << 32) + length;
}
SHARDREC_DEVICE uint32_t ids_of(uint64_t sum) { return static_cast<uint32_t>(sum); }
SHARDREC_DEVICE uint32_t bags_of(uint64_t sum) { return static_cast<uint32_t>(sum >> 32); }

}  // namespace shardrec::compute::cuda
