// What threads find in lists that they check, put together.
#pragma once

#include "compute/cuda/kernels/tiles.h"

namespace shardrec::compute::cuda {

// Where a list begins that is named by bytes from another place (host::bytes_between).
SHARDREC_DEVICE const void* bytes_behind(const void* place, int64_t bytes) {
  return static_cast<const unsigned char*>(place) + bytes;
}

// Calls body with a list of int32 or int64.
template <class Body>
SHARDREC_DEVICE void with_integers(const void* list, int32_t are_64, Body body) {
  if (are_64 != 0) {
    body(static_cast<const int64_t*>(list));
  } else {
    body(static_cast<const int32_t*>(list));
  }
}

// This thread's items of a tile of a list of so many, all loads on their way at once.
template <class Number>
SHARDREC_DEVICE void load_items(const Number* list, int64_t begin, int64_t count,
                                Number (&items)[kTileItems]) {
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t i = begin + item_of_tile(k);
    items[k] = i < count ? list[i] : Number{0};
  }
}

SHARDREC_DEVICE void add_to(uint64_t* sum, uint64_t value) {
  static_assert(sizeof(uint64_t) == sizeof(unsigned long long));
  atomicAdd(reinterpret_cast<unsigned long long*>(sum), value);
}

// Adds up over the lanes of the warp, then over warps. All lanes call it.
SHARDREC_DEVICE void add_to_sum(uint64_t* sum, uint64_t value) {
  const uint64_t all = sum_of_lanes_up_to_this(value);
  if (lane_index() == kWarp - 1 && all != 0) add_to(sum, all);
}

// The first wrong item that a thread has seen in its tile.
class FirstWrong {
 public:
  SHARDREC_DEVICE void see(int item) {
    if (static_cast<unsigned>(item) < first_) first_ = static_cast<unsigned>(item);
  }
  // The first one of all threads, in a place that is ~i for item i, and 0 for none: the one that is
  // larger is the earlier one. begin: of the tile. All lanes of the warp call it.
  SHARDREC_DEVICE void tell(uint64_t* place, int64_t begin) const {
    const unsigned first = __reduce_min_sync(kAllLanes, first_);
    if (first == kNone || lane_index() != 0) return;
    atomicMax(reinterpret_cast<unsigned long long*>(place),
              ~static_cast<unsigned long long>(begin + first));
  }

 private:
  static constexpr unsigned kNone = ~0U;
  unsigned first_ = kNone;
};

}  // namespace shardrec::compute::cuda
