// The instruction sets of simd.cpp, and one without vectors.
#include "compute/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/probe/kernels.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <utility>

#include "compute/probe/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::compute::probe::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;
inline constexpr Floats kFloats;
inline constexpr size_t kStep = HWY_LANES(float);
// Sums held in registers.
inline constexpr size_t kMostSums = HWY_TARGET == HWY_AVX3 ? 16 : 8;

template <size_t kBytes, PrefetchHint kHint>
HWY_INLINE void prefetch(const float* row) {
  constexpr int kLocality = kHint == PrefetchHint::kT0 ? 3 : kHint == PrefetchHint::kT1 ? 2 : 0;
  constexpr size_t kLine = 64 / sizeof(float);
  if constexpr (kHint != PrefetchHint::kNone) {
    for (size_t c = 0; c < std::max(kBytes / sizeof(float), size_t{1}); c += kLine) {
      __builtin_prefetch(row + c, 0, kLocality);
    }
  }
}

template <size_t kRowBytes, PrefetchHint kHint, bool kStreaming>
void gather(const ProbeGather& job) noexcept {
  constexpr size_t kColumns = kRowBytes / sizeof(float);
  constexpr size_t kSums = std::min(kColumns / kStep, kMostSums);
  constexpr size_t kTile = kSums * kStep;
  const int64_t end = job.bags * job.bag_length;
  for (int64_t bag = 0; bag < job.bags; ++bag) {
    const int64_t first = bag * job.bag_length;
    float* out = job.out + static_cast<size_t>(bag) * kColumns;
    for (size_t tile = 0; tile < kColumns; tile += kTile) {
      Vector sums[kSums];
      for (Vector& sum : sums) sum = hn::Zero(kFloats);
      for (int64_t i = first; i < first + job.bag_length; ++i) {
        if (tile == 0 && i + job.distance < end) {
          prefetch<kRowBytes, kHint>(job.table +
                                     static_cast<size_t>(job.ids[i + job.distance]) * kColumns);
        }
        const float* row = job.table + static_cast<size_t>(job.ids[i]) * kColumns + tile;
        for (size_t v = 0; v < kSums; ++v) {
          sums[v] = hn::Add(sums[v], hn::Load(kFloats, row + v * kStep));
        }
      }
      for (size_t v = 0; v < kSums; ++v) {
        if constexpr (kStreaming) {
          hn::Stream(sums[v], kFloats, out + tile + v * kStep);
        } else {
          hn::Store(sums[v], kFloats, out + tile + v * kStep);
        }
      }
    }
  }
  if constexpr (kStreaming) hwy::FlushStream();
}

template <size_t kRowBytes, PrefetchHint kHint>
void update(const ProbeUpdate& given) noexcept {
  const ProbeUpdate job = given;  // in registers: stores of vectors may alias it
  constexpr size_t kColumns = kRowBytes / sizeof(float);
  constexpr size_t kHeld = std::min(kColumns / kStep, kMostSums);  // vectors of the gradient
  for (int64_t i = 0; i < job.count; ++i) {
    if (i + job.distance < job.count) {
      const auto ahead = static_cast<size_t>(job.rows[i + job.distance]);
      prefetch<kRowBytes, kHint>(job.table + ahead * kColumns);
      prefetch<sizeof(float), kHint>(job.state + ahead);
    }
    const float* g = job.gradients + static_cast<size_t>(i % kProbeGradients) * kColumns;
    Vector held[kHeld];
    Vector squares = hn::Zero(kFloats);
    for (size_t v = 0; v < kHeld; ++v) {
      held[v] = hn::Load(kFloats, g + v * kStep);
      squares = hn::MulAdd(held[v], held[v], squares);
    }
    for (size_t c = kHeld * kStep; c < kColumns; c += kStep) {
      const Vector vector = hn::Load(kFloats, g + c);
      squares = hn::MulAdd(vector, vector, squares);
    }
    float& state = job.state[job.rows[i]];
    const float sum =
        state + hn::GetLane(hn::SumOfLanes(kFloats, squares)) / static_cast<float>(kColumns);
    state = sum;
    // One number: whole vectors of roots and quotients would be the limit for short rows.
    const hn::CappedTag<float, 1> one;
    const float root = hn::GetLane(hn::Sqrt(hn::Set(one, sum)));
    const Vector rate = hn::Set(kFloats, -0.01f / (root + 1e-8f));
    float* row = job.table + static_cast<size_t>(job.rows[i]) * kColumns;
    const auto step = [&](Vector gradient, size_t c) {
      hn::Store(hn::MulAdd(rate, gradient, hn::Load(kFloats, row + c)), kFloats, row + c);
    };
    for (size_t v = 0; v < kHeld; ++v) step(held[v], v * kStep);
    for (size_t c = kHeld * kStep; c < kColumns; c += kStep) step(hn::Load(kFloats, g + c), c);
  }
}

template <size_t kRowBytes, size_t... kHint>
constexpr std::array<std::array<ProbeKernels::Gather, 2>, kPrefetchHints> gathers(
    std::index_sequence<kHint...>) {
  return {{{gather<kRowBytes, static_cast<PrefetchHint>(kHint), false>,
            gather<kRowBytes, static_cast<PrefetchHint>(kHint), true>}...}};
}

template <size_t kRowBytes, size_t... kHint>
constexpr std::array<ProbeKernels::Update, kPrefetchHints> updates(std::index_sequence<kHint...>) {
  return {update<kRowBytes, static_cast<PrefetchHint>(kHint)>...};
}

template <size_t... kSize>
constexpr ProbeKernels all_kernels(std::index_sequence<kSize...>) {
  constexpr auto kHints = std::make_index_sequence<kPrefetchHints>();
  return {.gather = {gathers<static_cast<size_t>(kProbeRowBytes[kSize])>(kHints)...},
          .update = {updates<static_cast<size_t>(kProbeRowBytes[kSize])>(kHints)...}};
}

extern const ProbeKernels kProbeKernels;
constexpr ProbeKernels kProbeKernels = all_kernels(std::make_index_sequence<kProbeRowSizes>());

}  // namespace shardrec::compute::probe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <string_view>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/kernels.h"

namespace shardrec::compute::probe {

// The set without vectors is there where it is the least that the compiler may assume.
const ProbeKernels& probe_kernels() {
  [[maybe_unused]] const std::string_view set = cpu_kernels().name;
#if HWY_TARGETS & HWY_AVX3
  if (set == "avx512") return N_AVX3::kProbeKernels;
#endif
#if HWY_TARGETS & HWY_AVX2
  if (set == "avx2") return N_AVX2::kProbeKernels;
#endif
  return HWY_STATIC_DISPATCH(kProbeKernels);
}

}  // namespace shardrec::compute::probe
#endif  // HWY_ONCE
