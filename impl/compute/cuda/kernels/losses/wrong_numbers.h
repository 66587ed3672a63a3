// The first wrong number of a list, in a word of the device's memory: ~i for number i, 0 for none.
#pragma once

#include "compute/cuda/kernels/device.h"

namespace shardrec::compute::cuda {

SHARDREC_DEVICE void tell_wrong(uint64_t* first, int64_t number) {
  static_assert(sizeof(uint64_t) == sizeof(unsigned long long));
  atomicMax(reinterpret_cast<unsigned long long*>(global(first)),
            ~static_cast<unsigned long long>(number));
}

}  // namespace shardrec::compute::cuda
