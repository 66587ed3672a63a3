// Kernels on rows: the gradient of each touched row is summed, and an optimizer step taken with it.
// The kinds of step are the rows of a table at the end.
#if defined(SHARDREC_SIMD_UPDATE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_SIMD_UPDATE_INL
#undef SHARDREC_SIMD_UPDATE_INL
#else
#define SHARDREC_SIMD_UPDATE_INL
#endif

#include <array>

#include "compute/cpu/simd_gradient-inl.h"
#include "compute/cpu/simd_rows-inl.h"
#include "compute/cpu/simd_steps-inl.h"
#include "compute/cpu/simd_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::compute::cpu::HWY_NAMESPACE {

template <class Step>
struct StepColumns {
  const Constants& k;
  const Rates& rates;
  const RangeOfRow& range;

  template <bool kTail>
  HWY_INLINE void vector(size_t c, const Tail& tail) const {
    Step::template step<kTail>(k, rates, range, c, tail);
  }
};

template <class Step, bool kStore>
struct StepSums {
  static constexpr size_t kSums = static_cast<size_t>(kNeeds<Step>.sums);
  const Constants& k;
  const RangeOfRow& range;

  template <bool kTail>
  HWY_INLINE void vector(size_t c, const Tail& tail, Vector* sums) const {
    Step::template sum<kStore, kTail>(k, range, c, tail, sums);
  }
};

template <class Step>
class Stepper {
 public:
  explicit HWY_INLINE Stepper(const RowUpdate& job) : job_(job), k_(job.step) {}

  HWY_INLINE void prefetch_state(int64_t u) const {
    const int64_t row = job_.rows[u];
    for (int m = 0; m < kNeeds<Step>.matrices; ++m) {
      prefetch(job_.matrices[m] + row * job_.width, static_cast<size_t>(job_.width));
    }
    if constexpr (kNeeds<Step>.row_values > 0) {
      for (int s = 0; s < job_.statistics; ++s) __builtin_prefetch(job_.state[s] + row, 1, 2);
    }
  }

  // One step of unique row u, whose columns are w.
  HWY_INLINE void row(int64_t u, float* w, float* gradient) const {
    const ColumnRange whole{0, job_.width};
    if constexpr (kNeeds<Step>.sums == 0) {
      columns(range_of(u, w, gradient, whole), Rates{});
    } else if (job_.sums != nullptr) {
      const RangeOfRow range = range_of(u, w, gradient, whole, 0);
      float own[kMostSums];
      if constexpr (kMovesInSums<Step>) sum_columns(Sums<true>{k_, range}, range.columns, own);
      columns(range, Step::rates(job_.step, range.state, job_.sums + u * kNeeds<Step>.sums,
                                 static_cast<float>(job_.statistic_columns)));
    } else {
      for (int s = 0; s < job_.statistics; ++s) {
        const RangeOfRow range = range_of(u, w, gradient, job_.columns[s], s);
        float own[kMostSums];
        sum_columns(Sums<true>{k_, range}, range.columns, own);
        columns(range,
                Step::rates(job_.step, range.state, own,
                            static_cast<float>(job_.columns[s].end - job_.columns[s].begin)));
      }
    }
  }

  // The sums of a range, without a change.
  HWY_INLINE void sums(int64_t u, float* w, float* gradient, ColumnRange range_columns,
                       float* out) const {
    const RangeOfRow range = range_of(u, w, gradient, range_columns);
    sum_columns(Sums<false>{k_, range}, range.columns, out);
  }

 private:
  template <bool kStore>
  using Sums = StepSums<Step, kStore>;

  HWY_INLINE RangeOfRow range_of(int64_t u, float* w, float* gradient, ColumnRange range,
                                 [[maybe_unused]] int statistic = -1) const {
    const int64_t row = job_.rows[u];
    [[maybe_unused]] const int64_t at = row * job_.width + range.begin;
    RangeOfRow out{.columns = static_cast<size_t>(range.end - range.begin),
                   .w = w + range.begin,
                   .g = gradient + range.begin};
    if constexpr (kNeeds<Step>.matrices > 0) out.m = job_.matrices[0] + at;
    if constexpr (kNeeds<Step>.matrices > 1) out.v = job_.matrices[1] + at;
    if constexpr (kNeeds<Step>.row_values > 0) {
      if (statistic >= 0) out.state = job_.state[statistic] + row;
    }
    return out;
  }

  HWY_INLINE void columns(const RangeOfRow& range, const Rates& rates) const {
    for_columns(StepColumns<Step>{k_, rates, range}, range.columns);
  }

  const RowUpdate& job_;
  Constants k_;
};

template <class Step, class Type, bool kWeighted>
void update_rows(const RowUpdate& job, int64_t first_row, int64_t last_row,
                 std::byte* memory) noexcept {
  const RowScratch scratch(memory, job.width);
  const GradientSum<kWeighted> sum(job, first_row, last_row, scratch.gradient);
  const TableRows<Type> table(job, scratch, RoundingUse::kStep);
  const Stepper<Step> stepper(job);
  for (int64_t u = first_row; u < last_row && u < first_row + kRowsAhead; ++u) {
    table.prefetch_row(u);
    stepper.prefetch_state(u);
  }
  for (int64_t u = first_row; u < last_row; ++u) {
    if (u + kRowsAhead < last_row) {
      table.prefetch_row(u + kRowsAhead);
      stepper.prefetch_state(u + kRowsAhead);
    }
    sum.row(u);
    stepper.row(u, table.open(u), scratch.gradient);
    table.close(u);
  }
}

template <class Step, class Type, bool kWeighted>
void sums_of_rows(const RowUpdate& job, const ColumnRange* ranges, int count, float* out,
                  int64_t first_row, int64_t last_row, std::byte* memory) noexcept {
  const RowScratch scratch(memory, job.width);
  const GradientSum<kWeighted> sum(job, first_row, last_row, scratch.gradient);
  const TableRows<Type> table(job, scratch, RoundingUse::kStep);
  const Stepper<Step> stepper(job);
  for (int64_t u = first_row; u < last_row; ++u) {
    if (u + kRowsAhead < last_row) {
      table.prefetch_row(u + kRowsAhead);
      stepper.prefetch_state(u + kRowsAhead);
    }
    sum.row(u);
    float* w = table.open(u);
    for (int r = 0; r < count; ++r) {
      stepper.sums(u, w, scratch.gradient, ranges[r], out + (u * count + r) * kNeeds<Step>.sums);
    }
  }
}

template <bool kWeighted>
void gradients_of_rows(const RowUpdate& job, float* out, int64_t first_row, int64_t last_row,
                       std::byte* memory) noexcept {
  const RowScratch scratch(memory, job.width);
  const GradientSum<kWeighted> sum(job, first_row, last_row, scratch.gradient);
  for (int64_t u = first_row; u < last_row; ++u) {
    sum.row(u);
    std::memcpy(out + u * job.width, scratch.gradient,
                static_cast<size_t>(job.width) * sizeof(float));
  }
}

// What differs by optimizer, weight decay, element type and weights.
struct RowKernels {
  void (*update)(const RowUpdate&, int64_t, int64_t, std::byte*) noexcept = nullptr;
  void (*sums)(const RowUpdate&, const ColumnRange*, int, float*, int64_t, int64_t,
               std::byte*) noexcept = nullptr;
};

template <template <WeightDecay> class Step, WeightDecay kDecay, class Type, bool kWeighted>
constexpr RowKernels row_kernels() {
  using Stepped = Step<kDecay>;
  RowKernels kernels;
  if constexpr (accepts(Stepped::kKind, kDecay)) {
    kernels.update = update_rows<Stepped, Type, kWeighted>;
    if constexpr (kNeeds<Stepped>.sums > 0) kernels.sums = sums_of_rows<Stepped, Type, kWeighted>;
  }
  return kernels;
}

using OfWeights = std::array<RowKernels, 2>;
using OfElements = std::array<OfWeights, 3>;
using OfDecays = std::array<OfElements, 3>;

template <template <WeightDecay> class Step, WeightDecay kDecay, class Type>
inline constexpr OfWeights kOfWeights = {row_kernels<Step, kDecay, Type, false>(),
                                         row_kernels<Step, kDecay, Type, true>()};
template <template <WeightDecay> class Step, WeightDecay kDecay>
inline constexpr OfElements kOfElements = {kOfWeights<Step, kDecay, Float32Rows>,
                                           kOfWeights<Step, kDecay, HalfRows<Float16>>,
                                           kOfWeights<Step, kDecay, HalfRows<Bfloat16>>};
template <template <WeightDecay> class Step>
inline constexpr OfDecays kOfDecays = {kOfElements<Step, WeightDecay::kNone>,
                                       kOfElements<Step, WeightDecay::kL2>,
                                       kOfElements<Step, WeightDecay::kDecouple>};
inline constexpr std::array<OfDecays, kOptimizerKinds> kOptimizers = {kOfDecays<Sgd>,
                                                                      kOfDecays<Adagrad>,
                                                                      kOfDecays<RowwiseAdagrad>,
                                                                      kOfDecays<Adam>,
                                                                      kOfDecays<PartialRowwiseAdam>,
                                                                      kOfDecays<Lamb>,
                                                                      kOfDecays<PartialRowwiseLamb>,
                                                                      kOfDecays<LarsSgd>};

HWY_INLINE const RowKernels& kernels_of(const RowUpdate& job) {
  const OfDecays& optimizer = kOptimizers[static_cast<size_t>(job.step.kind)];
  const OfElements& decay = optimizer[static_cast<size_t>(job.step.decay_mode)];
  return decay[static_cast<size_t>(job.element)][job.weights == nullptr ? 0 : 1];
}

void row_update(const RowUpdate& job, int64_t first_row, int64_t last_row,
                std::byte* scratch) noexcept {
  if (first_row >= last_row || job.width <= 0) return;
  kernels_of(job).update(job, first_row, last_row, scratch);
}

void row_sums(const RowUpdate& job, const ColumnRange* ranges, int count, float* out,
              int64_t first_row, int64_t last_row, std::byte* scratch) noexcept {
  if (first_row >= last_row || job.width <= 0 || state_needs(job.step.kind).sums == 0) return;
  kernels_of(job).sums(job, ranges, count, out, first_row, last_row, scratch);
}

void row_gradients(const RowUpdate& job, float* out, int64_t first_row, int64_t last_row,
                   std::byte* scratch) noexcept {
  if (first_row >= last_row || job.width <= 0) return;
  job.weights == nullptr ? gradients_of_rows<false>(job, out, first_row, last_row, scratch)
                         : gradients_of_rows<true>(job, out, first_row, last_row, scratch);
}

}  // namespace shardrec::compute::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
