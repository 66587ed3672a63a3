// Sums over columns: 16 lanes and the tree (kernels.h).
#if defined(SHARDREC_SIMD_SUMS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_SIMD_SUMS_INL
#undef SHARDREC_SIMD_SUMS_INL
#else
#define SHARDREC_SIMD_SUMS_INL
#endif

#include "compute/cpu/simd_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::compute::cpu::HWY_NAMESPACE {

// Calls job.vector<is_tail>(column, tail, sums) for all columns, where sums are the job's kSums
// lanes of that vector, and writes the kSums totals.
template <class Job>
HWY_INLINE void sum_columns(const Job& job, size_t columns, float* out) {
  constexpr size_t kWhole = static_cast<size_t>(kLanes);
  Vector lanes[kLaneVectors][Job::kSums];
  for (auto& of_vector : lanes) {
    for (Vector& lane : of_vector) lane = hn::Zero(kFloats);
  }
  const Tail tail(columns % kStep);
  size_t c = 0;
  for (; c + kWhole <= columns; c += kWhole) {
    for (size_t v = 0; v < kLaneVectors; ++v) {
      job.template vector<false>(c + v * kStep, tail, lanes[v]);
    }
  }
  for (size_t v = 0; v < kLaneVectors; ++v, c += kStep) {
    if (c + kStep <= columns) {
      job.template vector<false>(c, tail, lanes[v]);
    } else if (c < columns) {
      job.template vector<true>(c, tail, lanes[v]);
    }
  }
  for (size_t k = 0; k < Job::kSums; ++k) {
    HWY_ALIGN float lane[kLanes];
    for (size_t v = 0; v < kLaneVectors; ++v) hn::Store(lanes[v][k], kFloats, lane + v * kStep);
    for (size_t half = kWhole / 2; half > 0; half /= 2) {
      for (size_t i = 0; i < half; ++i) lane[i] += lane[i + half];
    }
    out[k] = lane[0];
  }
}

}  // namespace shardrec::compute::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
