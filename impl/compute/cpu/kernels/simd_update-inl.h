// Kernels on rows: the gradient of each touched row is summed, and an optimizer step taken with it.
// The kinds of step are the rows of a table at the end, one table per element type.
#if defined(SHARDREC_SIMD_UPDATE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_SIMD_UPDATE_INL
#undef SHARDREC_SIMD_UPDATE_INL
#else
#define SHARDREC_SIMD_UPDATE_INL
#endif

#include <algorithm>
#include <array>
#include <type_traits>

#include "compute/cpu/kernels/row_kernels.h"
#include "compute/cpu/kernels/simd_gradient-inl.h"
#include "compute/cpu/kernels/simd_math-inl.h"
#include "compute/cpu/kernels/simd_rows-inl.h"
#include "compute/cpu/kernels/simd_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::compute::cpu::HWY_NAMESPACE {

// Where a range of columns of a row lies. Row: FloatRow, or HalfRow where the weights are read and
// written as they are stored.
template <class Row>
struct RangeOfRow {
  size_t columns = 0;
  Row w;
  float* m = nullptr;      // first matrix
  float* v = nullptr;      // second matrix
  float* state = nullptr;  // row value
};

struct FloatRow {
  float* at;

  template <bool kTail>
  HWY_INLINE Vector load(size_t c, const Tail& tail) const {
    return HWY_NAMESPACE::load<kTail>(at + c, tail);
  }
  template <bool kTail>
  HWY_INLINE void store(Vector w, size_t c, const Tail& tail) const {
    HWY_NAMESPACE::store<kTail>(w, at + c, tail);
  }
};

// Rounded to nearest when stored.
template <class Type>
struct HalfRow {
  uint16_t* at;

  template <bool kTail>
  HWY_INLINE Vector load(size_t c, const Tail& tail) const {
    return Type::template load<kTail>(at + c, tail);
  }
  template <bool kTail>
  HWY_INLINE void store(Vector w, size_t c, const Tail& tail) const {
    store_half<kTail>(round_nearest<typename Type::Half>(w), at + c, tail);
  }
};

// Do the sums depend on more than the gradient?
template <class Step>
inline constexpr bool kSumsReadRows =
    !(Step::kKind == OptimizerKind::kPartialRowwiseAdam ||
      (Step::kKind == OptimizerKind::kRowwiseAdagrad && Step::kDecayMode != WeightDecay::kL2));

template <class Step, bool kTail, class Row>
HWY_INLINE Column column_at(const RangeOfRow<Row>& range, size_t c, const Tail& tail, Vector g) {
  Column x{range.w.template load<kTail>(c, tail), g, g, g};
  if constexpr (kNeeds<Step>.matrices > 0) x.m = load<kTail>(range.m + c, tail);
  if constexpr (kNeeds<Step>.matrices > 1) x.v = load<kTail>(range.v + c, tail);
  return x;
}

template <class Step, bool kTail, class Row>
HWY_INLINE void store_moments(const RangeOfRow<Row>& range, size_t c, const Tail& tail,
                              const Column& x) {
  if constexpr (kNeeds<Step>.matrices > 0) store<kTail>(x.m, range.m + c, tail);
  if constexpr (kNeeds<Step>.matrices > 1) store<kTail>(x.v, range.v + c, tail);
}

// Adds a vector of columns to the sums. Those that a tail has not add +0: a lane, never -0, keeps
// its bits. kStore: what moves in sums is stored; g becomes what the
// step takes for it.
template <class Step, bool kStore, bool kTail, class Row>
HWY_INLINE void sum_at(const Constants& k, const RangeOfRow<Row>& range, size_t c, const Tail& tail,
                       Vector& g, Vector* sums) {
  Column x = column_at<Step, kTail>(range, c, tail, g);
  if constexpr (kMovesFirst<Step>) {
    Step::move(k, x);
    if constexpr (kTail) x.g = tail.only(x.g);  // eps may be 0
  }
  Step::sum(k, x, sums);
  if constexpr (kStore && kMovesFirst<Step>) {
    store_moments<Step, kTail>(range, c, tail, x);
    g = x.g;
  }
}

template <class Step, bool kTail, class Row>
HWY_INLINE void step_at(const Constants& k, const Rates& rates, const RangeOfRow<Row>& range,
                        size_t c, const Tail& tail, Vector g) {
  Column x = column_at<Step, kTail>(range, c, tail, g);
  Step::step(k, rates, x);
  if constexpr (!kMovesFirst<Step>) store_moments<Step, kTail>(range, c, tail, x);
  range.w.template store<kTail>(x.w, c, tail);
}

// The same with gradients in memory: jobs for for_columns() and sum_columns().
template <class Step>
struct StepColumns {
  const Constants& k;
  const Rates& rates;
  const RangeOfRow<FloatRow>& range;
  const float* g;

  template <bool kTail>
  HWY_INLINE void vector(size_t c, const Tail& tail) const {
    step_at<Step, kTail>(k, rates, range, c, tail, load<kTail>(g + c, tail));
  }
};

template <class Step, bool kStore>
struct StepSums {
  static constexpr size_t kSums = static_cast<size_t>(kNeeds<Step>.sums);
  const Constants& k;
  const RangeOfRow<FloatRow>& range;
  float* g;

  template <bool kTail>
  HWY_INLINE void vector(size_t c, const Tail& tail, Vector* sums) const {
    Vector gradient = load<kTail>(g + c, tail);
    sum_at<Step, kStore, kTail>(k, range, c, tail, gradient, sums);
    if constexpr (kStore && kMovesFirst<Step>) store<kTail>(gradient, g + c, tail);
  }
};

template <class Step>
class Stepper {
 public:
  explicit HWY_INLINE Stepper(const RowUpdate& job) : job_(job), k_(job.step) {}

  HWY_INLINE void prefetch_state(bool near, int64_t u) const {
    const int64_t row = job_.rows[u];
    for (int m = 0; m < kNeeds<Step>.matrices; ++m) {
      prefetch(near, job_.matrices[m] + row * job_.width, static_cast<size_t>(job_.width));
    }
    if constexpr (kNeeds<Step>.row_values > 0) {
      for (int s = 0; s < job_.statistics; ++s) __builtin_prefetch(job_.state[s] + row, 0, 2);
    }
  }

  // One step of unique row u, whose columns are w.
  HWY_INLINE void row(int64_t u, float* w, float* gradient) const {
    const ColumnRange whole{0, job_.width};
    if constexpr (kNeeds<Step>.sums == 0) {
      step_range(range_of(u, FloatRow{w}, whole), Rates{}, gradient);
    } else if (job_.sums != nullptr) {
      const auto range = range_of(u, FloatRow{w}, whole, 0);
      float own[kMostSums];
      if constexpr (kMovesFirst<Step>) {
        sum_columns(StepSums<Step, true>{k_, range, gradient}, range.columns, own);
      }
      step_range(range, shared_rates(u, range.state), gradient);
    } else {
      for (int s = 0; s < job_.statistics; ++s) {
        const ColumnRange& columns = job_.columns[s];
        const auto range = range_of(u, FloatRow{w + columns.begin}, columns, s);
        float* g = gradient + columns.begin;
        float own[kMostSums];
        sum_columns(StepSums<Step, true>{k_, range, g}, range.columns, own);
        step_range(range, own_rates(range, own), g);
      }
    }
  }

  // The sums of a range, without a change.
  HWY_INLINE void sums(int64_t u, float* w, float* gradient, ColumnRange columns,
                       float* out) const {
    const auto range = range_of(u, FloatRow{w + columns.begin}, columns);
    sum_columns(StepSums<Step, false>{k_, range, gradient + columns.begin}, range.columns, out);
  }

 private:
  template <class Row>
  HWY_INLINE RangeOfRow<Row> range_of(int64_t u, Row w, ColumnRange columns,
                                      [[maybe_unused]] int statistic = -1) const {
    const int64_t row = job_.rows[u];
    [[maybe_unused]] const int64_t at = row * job_.width + columns.begin;
    RangeOfRow<Row> out{.columns = static_cast<size_t>(columns.end - columns.begin), .w = w};
    if constexpr (kNeeds<Step>.matrices > 0) out.m = job_.matrices[0] + at;
    if constexpr (kNeeds<Step>.matrices > 1) out.v = job_.matrices[1] + at;
    if constexpr (kNeeds<Step>.row_values > 0) {
      if (statistic >= 0) out.state = job_.state[statistic] + row;
    }
    return out;
  }

  template <class Row>
  HWY_INLINE Rates own_rates(const RangeOfRow<Row>& range, const float* sums) const {
    return Step::rates(job_.step, range.state, sums, static_cast<float>(range.columns));
  }

  HWY_INLINE Rates shared_rates(int64_t u, float* state) const {
    return Step::rates(job_.step, state, job_.sums + u * kNeeds<Step>.sums,
                       static_cast<float>(job_.statistic_columns));
  }

  HWY_INLINE void step_range(const RangeOfRow<FloatRow>& range, const Rates& rates,
                             const float* gradient) const {
    for_columns(StepColumns<Step>{k_, rates, range, gradient}, range.columns);
  }

  const RowUpdate& job_;
  Constants k_;
};

// Calls visit(u) for the rows, whose memory has been prefetched.
template <class Type, class Step, class Visit>
HWY_INLINE void for_rows(const RowUpdate& job, const TableRows<Type>& table,
                         const Stepper<Step>& stepper, int64_t first_row, int64_t last_row,
                         Visit visit) {
  const Prefetch way = update_prefetch<Type>(job, first_row, last_row);
  const bool near = way.hint == PrefetchHint::kT0;
  const int64_t ahead = way.distance_rows;
  for (int64_t u = first_row; u < last_row && u < first_row + ahead; ++u) {
    table.prefetch_row(near, u);
    stepper.prefetch_state(near, u);
  }
  for (int64_t u = first_row; u < last_row; ++u) {
    if (u + ahead < last_row) {
      table.prefetch_row(near, u + ahead);
      stepper.prefetch_state(near, u + ahead);
    }
    visit(u);
  }
}

// Can rows of kVectors whole vectors be updated in registers?
template <class Step, class Type, size_t kVectors>
HWY_INLINE bool fits_registers(const RowUpdate& job) {
  return job.width == static_cast<int64_t>(kVectors * kStep) &&
         (std::is_same_v<Type, Float32Rows> || !job.rounding.stochastic) &&
         (kNeeds<Step>.sums == 0 || job.sums != nullptr || job.statistics == 1);
}

// From the gradients to the stored row all stays in registers. What the job says is copied first:
// it is not read again after each store.
template <class Step, class Type, size_t kVectors>
void update_in_registers(const RowUpdate& job, int64_t first_row, int64_t last_row) noexcept {
  using Stored = typename Type::Stored;
  using Row = std::conditional_t<std::is_same_v<Type, Float32Rows>, FloatRow, HalfRow<Type>>;
  constexpr StateNeeds needs = kNeeds<Step>;
  constexpr size_t kWidth = kVectors * kStep;
  const RegisterSum<kVectors> sum(job, first_row, last_row);
  const Constants k(job.step);
  const OptimizerStep step = job.step;
  const Tail none(0);
  auto* const table = static_cast<Stored*>(job.table);
  const size_t stride = job.stride;
  const int64_t* const rows = job.rows;
  const float* const shared_sums = job.sums;
  const auto sum_columns =
      static_cast<float>(shared_sums != nullptr ? job.statistic_columns : job.width);
  float* const m = needs.matrices > 0 ? job.matrices[0] : nullptr;
  float* const v = needs.matrices > 1 ? job.matrices[1] : nullptr;
  float* const values = needs.row_values > 0 ? job.state[0] : nullptr;
  const Prefetch way = update_prefetch<Type>(job, first_row, last_row);
  const bool near = way.hint == PrefetchHint::kT0;
  // Always inlined: gcc leaves out the calls of functions that only prefetch.
  const auto prefetch_all = [&](int64_t u) __attribute__((always_inline)) {
    const auto row = static_cast<size_t>(rows[u]);
    if constexpr (needs.row_values > 0) __builtin_prefetch(values + row, 0, 2);
    prefetch_bytes<kWidth * sizeof(Stored)>(near, table + row * stride);
    if constexpr (needs.matrices > 0) {
      prefetch_bytes<kWidth * sizeof(float)>(near, m + row * kWidth);
    }
    if constexpr (needs.matrices > 1) {
      prefetch_bytes<kWidth * sizeof(float)>(near, v + row * kWidth);
    }
  };

  const int64_t ahead = way.distance_rows;
  for (int64_t u = first_row; u < std::min(last_row, first_row + ahead); ++u) prefetch_all(u);
  for (int64_t u = first_row; u < last_row; ++u) {
    prefetch_all(std::min(u + ahead, last_row - 1));
    Vector g[kVectors];
    sum.row(u, g);
    const auto row = static_cast<size_t>(rows[u]);
    const RangeOfRow<Row> range{.columns = kWidth,
                                .w = {table + row * stride},
                                .m = m + (needs.matrices > 0 ? row * kWidth : 0),
                                .v = v + (needs.matrices > 1 ? row * kWidth : 0),
                                .state = values + (needs.row_values > 0 ? row : 0)};
    Rates rates{};
    if constexpr (needs.sums != 0) {
      float own[kMostSums];
      if (kMovesFirst<Step> || shared_sums == nullptr) {
        Vector lanes[kLaneVectors][needs.sums];
        clear(lanes);
        SHARDREC_UNROLL
        for (size_t i = 0; i < kVectors; ++i) {
          sum_at<Step, true, false>(k, range, i * kStep, none, g[i], lanes[i % kLaneVectors]);
        }
        add_up(lanes, own);
      }
      rates = Step::rates(step, range.state,
                          shared_sums == nullptr ? own : shared_sums + u * needs.sums, sum_columns);
    }
    SHARDREC_UNROLL
    for (size_t i = 0; i < kVectors; ++i) {
      step_at<Step, false>(k, rates, range, i * kStep, none, g[i]);
    }
  }
}

// Rows of any width: the gradient's sum goes through scratch, and so do rows of 16 bits.
template <class Step, class Type>
void update_in_memory(const RowUpdate& job, int64_t first_row, int64_t last_row,
                      std::byte* memory) noexcept {
  const RowScratch scratch(memory, job.width);
  const GradientSum sum(job, first_row, last_row, scratch.gradient);
  const TableRows<Type> table(job, scratch, math::RoundingUse::kStep);
  const Stepper<Step> stepper(job);
  for_rows(job, table, stepper, first_row, last_row, [&](int64_t u) HWY_ATTR {
    sum.row(u);
    stepper.row(u, table.open(u), scratch.gradient);
    table.close(u);
  });
}

template <class Step, class Type>
void update_rows(const RowUpdate& job, int64_t first_row, int64_t last_row,
                 std::byte* memory) noexcept {
  if (fits_registers<Step, Type, 8>(job)) {
    update_in_registers<Step, Type, 8>(job, first_row, last_row);
  } else if (fits_registers<Step, Type, 4>(job)) {
    update_in_registers<Step, Type, 4>(job, first_row, last_row);
  } else if (fits_registers<Step, Type, 2>(job)) {
    update_in_registers<Step, Type, 2>(job, first_row, last_row);
  } else if (fits_registers<Step, Type, 1>(job)) {
    update_in_registers<Step, Type, 1>(job, first_row, last_row);
  } else {
    update_in_memory<Step, Type>(job, first_row, last_row, memory);
  }
}

// Sums over all columns that depend on the gradient alone, of rows of kVectors whole vectors.
template <class Step, size_t kVectors>
void sums_in_registers(const RowUpdate& job, float* out, int64_t first_row, int64_t last_row,
                       std::byte* memory) noexcept {
  constexpr size_t kSums = kNeeds<Step>.sums;
  const RegisterSum<kVectors> sum(job, first_row, last_row);
  const Constants k(job.step);
  const Tail none(0);
  // The row itself and its moments are not looked at, but there.
  RangeOfRow<FloatRow> range{.columns = kVectors * kStep, .w = {RowScratch(memory, job.width).row}};
  if constexpr (kNeeds<Step>.matrices > 0) range.m = job.matrices[0];
  if constexpr (kNeeds<Step>.matrices > 1) range.v = job.matrices[1];
  for (int64_t u = first_row; u < last_row; ++u) {
    Vector g[kVectors];
    sum.row(u, g);
    Vector lanes[kLaneVectors][kSums];
    clear(lanes);
    SHARDREC_UNROLL
    for (size_t i = 0; i < kVectors; ++i) {
      sum_at<Step, false, false>(k, range, i * kStep, none, g[i], lanes[i % kLaneVectors]);
    }
    add_up(lanes, out + static_cast<size_t>(u) * kSums);
  }
}

template <class Step, class Type>
void sums_in_memory(const RowUpdate& job, const ColumnRange* ranges, int count, float* out,
                    int64_t first_row, int64_t last_row, std::byte* memory) noexcept {
  const RowScratch scratch(memory, job.width);
  const GradientSum sum(job, first_row, last_row, scratch.gradient);
  const TableRows<Type> table(job, scratch, math::RoundingUse::kStep);
  const Stepper<Step> stepper(job);
  const auto visit = [&](int64_t u) HWY_ATTR {
    sum.row(u);
    float* w = kSumsReadRows<Step> ? table.open(u) : scratch.row;
    for (int r = 0; r < count; ++r) {
      stepper.sums(u, w, scratch.gradient, ranges[r], out + (u * count + r) * kNeeds<Step>.sums);
    }
  };
  if constexpr (kSumsReadRows<Step>) {
    for_rows(job, table, stepper, first_row, last_row, visit);
  } else {
    for (int64_t u = first_row; u < last_row; ++u) visit(u);
  }
}

template <class Step, class Type>
void sums_of_rows(const RowUpdate& job, const ColumnRange* ranges, int count, float* out,
                  int64_t first_row, int64_t last_row, std::byte* memory) noexcept {
  if constexpr (!kSumsReadRows<Step>) {
    const auto fits = [&](size_t vectors) {
      return job.width == static_cast<int64_t>(vectors * kStep) && count == 1 &&
             ranges->begin == 0 && ranges->end == job.width;
    };
    if (fits(8)) return sums_in_registers<Step, 8>(job, out, first_row, last_row, memory);
    if (fits(4)) return sums_in_registers<Step, 4>(job, out, first_row, last_row, memory);
    if (fits(2)) return sums_in_registers<Step, 2>(job, out, first_row, last_row, memory);
    if (fits(1)) return sums_in_registers<Step, 1>(job, out, first_row, last_row, memory);
  }
  sums_in_memory<Step, Type>(job, ranges, count, out, first_row, last_row, memory);
}

template <template <WeightDecay> class Step, WeightDecay kDecay, class Type>
constexpr RowKernels row_kernels() {
  using Stepped = Step<kDecay>;
  RowKernels kernels;
  if constexpr (accepts(Stepped::kKind, kDecay)) {
    kernels.update = update_rows<Stepped, Type>;
    if constexpr (kNeeds<Stepped>.sums > 0) kernels.sums = sums_of_rows<Stepped, Type>;
  }
  return kernels;
}

template <template <WeightDecay> class Step, class Type>
constexpr OfDecays of_decays() {
  return {row_kernels<Step, WeightDecay::kNone, Type>(),
          row_kernels<Step, WeightDecay::kL2, Type>(),
          row_kernels<Step, WeightDecay::kDecouple, Type>()};
}

// By optimizer and weight decay.
template <class Type>
constexpr RowKernelTable row_kernel_table() {
#define SHARDREC_OF_DECAYS(Step) of_decays<Step, Type>(),
  return {SHARDREC_ROW_OPTIMIZERS(SHARDREC_OF_DECAYS)};
#undef SHARDREC_OF_DECAYS
}

}  // namespace shardrec::compute::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
