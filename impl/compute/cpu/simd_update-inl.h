// One optimizer step of each touched row. The kinds of step are the rows of a table at the end.
#if defined(SHARDREC_SIMD_UPDATE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_SIMD_UPDATE_INL
#undef SHARDREC_SIMD_UPDATE_INL
#else
#define SHARDREC_SIMD_UPDATE_INL
#endif

#include <array>
#include <cmath>

#include "compute/cpu/simd_gradient-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::compute::cpu::HWY_NAMESPACE {

// Adds the tree of 16 lanes; the first lane is the sum.
HWY_INLINE float sum_of_lanes(const Vector* lanes) {
  HWY_ALIGN float lane[kLanes];
  for (size_t v = 0; v < kLaneVectors; ++v) hn::Store(lanes[v], kFloats, lane + v * kStep);
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lane[i] += lane[i + half];
  }
  return lane[0];
}

// 16-lane sum over `columns` columns of e * e.
template <WeightDecay kDecay>
HWY_INLINE float square_sum(const OptimizerStep& step, const float* row, const float* gradient,
                            size_t columns) {
  const Vector decay = hn::Set(kFloats, step.weight_decay);
  Vector lanes[kLaneVectors];
  for (size_t v = 0; v < kLaneVectors; ++v) lanes[v] = hn::Zero(kFloats);
  size_t c = 0;
  for (size_t v = 0; c + kStep <= columns; c += kStep, v = (v + 1) % kLaneVectors) {
    Vector e = hn::LoadU(kFloats, gradient + c);
    if constexpr (kDecay == WeightDecay::kL2) e = hn::MulAdd(decay, hn::LoadU(kFloats, row + c), e);
    lanes[v] = hn::MulAdd(e, e, lanes[v]);
  }
  if (c < columns) {
    // A lane without a column gets +0 * +0 (the decay is finite): its sum, never -0, keeps its
    // bits.
    const Tail tail(columns - c);
    Vector e = tail.load(gradient + c);
    if constexpr (kDecay == WeightDecay::kL2) e = hn::MulAdd(decay, tail.load(row + c), e);
    Vector& lane = lanes[c / kStep % kLaneVectors];
    lane = hn::MulAdd(e, e, lane);
  }
  return sum_of_lanes(lanes);
}

// w = fma(-rate, g, kept * w); L2 in SGD: w = fma(-rate, fma(decay, w, g), w).
enum class Form : uint8_t { kPlain, kKept, kPenalised };

struct Rates {
  float rate = 0;
  float kept = 1;   // kKept
  float decay = 0;  // kPenalised
};

template <Form kForm, bool kTail>
HWY_INLINE void step_vector(const Rates& rates, float* row, const float* gradient,
                            const Tail& tail) {
  const Vector weight = load<kTail>(row, tail);
  Vector g = load<kTail>(gradient, tail);
  Vector kept = weight;
  if constexpr (kForm == Form::kPenalised) g = hn::MulAdd(hn::Set(kFloats, rates.decay), weight, g);
  if constexpr (kForm == Form::kKept) kept = hn::Mul(hn::Set(kFloats, rates.kept), weight);
  store<kTail>(hn::NegMulAdd(hn::Set(kFloats, rates.rate), g, kept), row, tail);
}

template <Form kForm>
HWY_INLINE void step_columns(const Rates& rates, float* row, const float* gradient,
                             size_t columns) {
  const Tail tail(columns % kStep);
  size_t c = 0;
  for (; c + kStep <= columns; c += kStep)
    step_vector<kForm, false>(rates, row + c, gradient + c, tail);
  if (c < columns) step_vector<kForm, true>(rates, row + c, gradient + c, tail);
}

template <WeightDecay kDecay>
struct Sgd {
  static HWY_INLINE void prefetch_state(const RowUpdate&, int64_t) {}

  static HWY_INLINE void step(const RowUpdate& job, int64_t, float* row, const float* gradient) {
    constexpr Form kForm = kDecay == WeightDecay::kNone ? Form::kPlain
                           : kDecay == WeightDecay::kL2 ? Form::kPenalised
                                                        : Form::kKept;
    const float rate = job.step.learning_rate;
    const float decay = job.step.weight_decay;
    step_columns<kForm>({.rate = rate, .kept = 1.0F - rate * decay, .decay = decay}, row, gradient,
                        static_cast<size_t>(job.width));
  }
};

template <WeightDecay kDecay>
struct RowwiseAdagrad {
  static HWY_INLINE void prefetch_state(const RowUpdate& job, int64_t row) {
    for (int s = 0; s < job.statistics; ++s) __builtin_prefetch(job.state[s] + row, 1, 2);
  }

  static HWY_INLINE void step(const RowUpdate& job, int64_t u, float* row, const float* gradient) {
    if (job.sums != nullptr) {
      step_range(job, job.sums[u], job.statistic_columns, job.state[0][job.rows[u]], row, gradient,
                 static_cast<size_t>(job.width));
      return;
    }
    for (int s = 0; s < job.statistics; ++s) {
      const int64_t begin = job.columns[s].begin;
      const int64_t columns = job.columns[s].end - begin;
      const float sum =
          square_sum<kDecay>(job.step, row + begin, gradient + begin, static_cast<size_t>(columns));
      step_range(job, sum, columns, job.state[s][job.rows[u]], row + begin, gradient + begin,
                 static_cast<size_t>(columns));
    }
  }

 private:
  static HWY_INLINE void step_range(const RowUpdate& job, float sum, int64_t statistic_columns,
                                    float& state, float* row, const float* gradient,
                                    size_t columns) {
    state = state + sum / static_cast<float>(statistic_columns);
    const float rate = job.step.learning_rate / (std::sqrt(state) + job.step.eps);
    const float decayed_by = kDecay == WeightDecay::kDecouple ? job.step.learning_rate : rate;
    step_columns<kDecay == WeightDecay::kNone ? Form::kPlain : Form::kKept>(
        {.rate = rate, .kept = 1.0F - decayed_by * job.step.weight_decay}, row, gradient, columns);
  }
};

HWY_INLINE float* row_of(const RowUpdate& job, int64_t u) {
  return static_cast<float*>(job.table) + static_cast<size_t>(job.rows[u]) * job.stride;
}

HWY_INLINE float* scratch_row(std::byte* scratch) {
  return static_cast<float*>(static_cast<void*>(scratch));
}

template <class Step, bool kWeighted>
void update_rows(const RowUpdate& job, int64_t first_row, int64_t last_row,
                 float* gradient) noexcept {
  constexpr int64_t kRowsAhead = 8;
  const GradientSum<kWeighted> sum(job, first_row, last_row, gradient);
  const auto width = static_cast<size_t>(job.width);
  for (int64_t u = first_row; u < last_row && u < first_row + kRowsAhead; ++u) {
    prefetch(row_of(job, u), width);
    Step::prefetch_state(job, job.rows[u]);
  }
  for (int64_t u = first_row; u < last_row; ++u) {
    if (u + kRowsAhead < last_row) {
      prefetch(row_of(job, u + kRowsAhead), width);
      Step::prefetch_state(job, job.rows[u + kRowsAhead]);
    }
    sum.row(u);
    Step::step(job, u, row_of(job, u), gradient);
  }
}

template <WeightDecay kDecay, bool kWeighted>
void square_sums_of_rows(const RowUpdate& job, const ColumnRange* ranges, int count,
                         float* square_sums, int64_t first_row, int64_t last_row,
                         float* gradient) noexcept {
  const GradientSum<kWeighted> sum(job, first_row, last_row, gradient);
  for (int64_t u = first_row; u < last_row; ++u) {
    sum.row(u);
    for (int s = 0; s < count; ++s) {
      const int64_t begin = ranges[s].begin;
      square_sums[u * count + s] =
          square_sum<kDecay>(job.step, row_of(job, u) + begin, gradient + begin,
                             static_cast<size_t>(ranges[s].end - begin));
    }
  }
}

using UpdateRows = void (*)(const RowUpdate&, int64_t, int64_t, float*) noexcept;
using SquareSums = void (*)(const RowUpdate&, const ColumnRange*, int, float*, int64_t, int64_t,
                            float*) noexcept;

// What differs by optimizer, weight decay and weights: [kind][decay][weighted].
template <template <WeightDecay> class Step, WeightDecay kDecay>
inline constexpr std::array<UpdateRows, 2> kUpdates = {update_rows<Step<kDecay>, false>,
                                                       update_rows<Step<kDecay>, true>};
template <template <WeightDecay> class Step>
inline constexpr std::array<std::array<UpdateRows, 2>, 3> kOptimizer = {
    kUpdates<Step, WeightDecay::kNone>, kUpdates<Step, WeightDecay::kL2>,
    kUpdates<Step, WeightDecay::kDecouple>};
inline constexpr std::array kUpdateTable = {kOptimizer<Sgd>, kOptimizer<RowwiseAdagrad>};

template <WeightDecay kDecay>
inline constexpr std::array<SquareSums, 2> kSums = {square_sums_of_rows<kDecay, false>,
                                                    square_sums_of_rows<kDecay, true>};
inline constexpr std::array kSquareSumTable = {kSums<WeightDecay::kNone>, kSums<WeightDecay::kL2>,
                                               kSums<WeightDecay::kDecouple>};

void row_update(const RowUpdate& job, int64_t first_row, int64_t last_row,
                std::byte* scratch) noexcept {
  if (job.element != Element::kFloat32 ||
      !(job.step.kind == OptimizerKind::kSgd || job.step.kind == OptimizerKind::kRowwiseAdagrad))
    return scalar::row_update(job, first_row, last_row, scratch);
  if (first_row >= last_row || job.width <= 0) return;
  const auto& optimizer = kUpdateTable[job.step.kind == OptimizerKind::kSgd ? 0 : 1];
  const auto& decay = optimizer[static_cast<size_t>(job.step.decay_mode)];
  decay[job.weights == nullptr ? 0 : 1](job, first_row, last_row, scratch_row(scratch));
}

void row_sums(const RowUpdate& job, const ColumnRange* ranges, int count, float* square_sums,
              int64_t first_row, int64_t last_row, std::byte* scratch) noexcept {
  if (job.element != Element::kFloat32 || job.step.kind != OptimizerKind::kRowwiseAdagrad)
    return scalar::row_sums(job, ranges, count, square_sums, first_row, last_row, scratch);
  if (first_row >= last_row || job.width <= 0) return;
  const auto& decay = kSquareSumTable[static_cast<size_t>(job.step.decay_mode)];
  decay[job.weights == nullptr ? 0 : 1](job, ranges, count, square_sums, first_row, last_row,
                                        scratch_row(scratch));
}

}  // namespace shardrec::compute::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
