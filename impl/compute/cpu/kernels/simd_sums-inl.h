// Sums over columns: 16 lanes and the tree (kernels.h).
#if defined(SHARDREC_SIMD_SUMS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_SIMD_SUMS_INL
#undef SHARDREC_SIMD_SUMS_INL
#else
#define SHARDREC_SIMD_SUMS_INL
#endif

#include "compute/cpu/kernels/simd_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::compute::cpu::HWY_NAMESPACE {

// The tree over the lanes of a vector: lane[i] += lane[i + half], down to one lane.
template <class D>
HWY_INLINE float add_lanes(D, hn::Vec<D> lanes) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(lanes);
  } else {
    constexpr hn::Half<D> kHalf;
    return add_lanes(kHalf, hn::Add(hn::LowerHalf(kHalf, lanes), hn::UpperHalf(kHalf, lanes)));
  }
}

// The tree over the kLanes lanes of kLaneVectors vectors.
HWY_INLINE float add_lanes(const Vector (&lanes)[kLaneVectors]) {
  Vector sums[kLaneVectors];
  SHARDREC_UNROLL
  for (size_t v = 0; v < kLaneVectors; ++v) sums[v] = lanes[v];
  SHARDREC_UNROLL
  for (size_t half = kLaneVectors / 2; half > 0; half /= 2) {
    SHARDREC_UNROLL
    for (size_t v = 0; v < half; ++v) sums[v] = hn::Add(sums[v], sums[v + half]);
  }
  return add_lanes(kFloats, sums[0]);
}

// The totals of kSums sums, of which each vector has its lanes.
template <size_t kSums>
HWY_INLINE void add_up(const Vector (&lanes)[kLaneVectors][kSums], float* out) {
  SHARDREC_UNROLL
  for (size_t k = 0; k < kSums; ++k) {
    Vector of_sum[kLaneVectors];
    SHARDREC_UNROLL
    for (size_t v = 0; v < kLaneVectors; ++v) of_sum[v] = lanes[v][k];
    out[k] = add_lanes(of_sum);
  }
}

// The lanes of kSums sums, before the first column. Vector v of a range adds to lanes
// [v % kLaneVectors]; add_up() ends the sum.
template <size_t kSums>
HWY_INLINE void clear(Vector (&lanes)[kLaneVectors][kSums]) {
  SHARDREC_UNROLL
  for (auto& of_vector : lanes) {
    SHARDREC_UNROLL
    for (Vector& lane : of_vector) lane = hn::Zero(kFloats);
  }
}

// Calls job.vector<is_tail>(column, tail, sums) for all columns, where sums are the job's kSums
// lanes of that vector, and writes the kSums totals.
template <class Job>
HWY_INLINE void sum_columns(const Job& job, size_t columns, float* out) {
  constexpr size_t kWhole = static_cast<size_t>(kLanes);
  Vector lanes[kLaneVectors][Job::kSums];
  clear(lanes);
  const Tail tail(columns % kStep);
  size_t c = 0;
  for (; c + kWhole <= columns; c += kWhole) {
    SHARDREC_UNROLL
    for (size_t v = 0; v < kLaneVectors; ++v) {
      job.template vector<false>(c + v * kStep, tail, lanes[v]);
    }
  }
  SHARDREC_UNROLL
  for (size_t v = 0; v < kLaneVectors; ++v, c += kStep) {
    if (c + kStep <= columns) {
      job.template vector<false>(c, tail, lanes[v]);
    } else if (c < columns) {
      job.template vector<true>(c, tail, lanes[v]);
    }
  }
  add_up(lanes, out);
}

}  // namespace shardrec::compute::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
