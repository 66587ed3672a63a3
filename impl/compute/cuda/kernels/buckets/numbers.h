// The types of gradients' elements: how one is loaded, what sums of it are taken in, and how a sum is stored.
#pragma once

#include "compute/cuda/kernels/rows.h"

namespace shardrec::compute::cuda {

struct Float32Number {
  using Stored = float;
  using Sum = float;
  SHARDREC_DEVICE static Sum widened(Stored x) { return x; }
  SHARDREC_DEVICE static Stored nearest(Sum x) { return x; }
};

struct Float64Number {
  using Stored = double;
  using Sum = double;
  SHARDREC_DEVICE static Sum widened(Stored x) { return x; }
  SHARDREC_DEVICE static Stored nearest(Sum x) { return x; }
};

template <class Half>
struct HalfNumber {
  using Stored = uint16_t;
  using Sum = float;
  SHARDREC_DEVICE static Sum widened(Stored x) { return widened_number<Half>(x); }
  SHARDREC_DEVICE static Stored nearest(Sum x) {
    return static_cast<uint16_t>(nearest_number<Half>(x));
  }
};
using Float16Number = HalfNumber<math::Float16>;
using Bfloat16Number = HalfNumber<math::Bfloat16>;

// Element i of a list in the memory of a device.
template <class Number>
SHARDREC_DEVICE typename Number::Stored stored_at(const void* list, int64_t i) {
  return global(static_cast<const typename Number::Stored*>(list))[i];
}

}  // namespace shardrec::compute::cuda
