// The optimizers' formulas (optimizer.h), one vector of columns at a time. Each is a struct:
//   kKind, kDecayMode
//   step(k, rates, columns)             moves state and w
// and, where state_needs() names sums,
//   sum<tail>(k, columns, tail, sums)   adds to the 16-lane sums; may move moments (kMovesInSums)
//   rates(step, state, sums, columns)   moves the row value; what step() needs of the sums
// A sum's unused lanes of a tail get +0: a lane, never -0, keeps its bits.
#if defined(SHARDREC_SIMD_STEPS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_SIMD_STEPS_INL
#undef SHARDREC_SIMD_STEPS_INL
#else
#define SHARDREC_SIMD_STEPS_INL
#endif

#include "compute/cpu/rates.h"
#include "compute/cpu/simd_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::compute::cpu::HWY_NAMESPACE {

// A vector of columns of a row: weights, summed gradient, and what the matrices of state hold.
struct Columns {
  Vector w, g, m, v;
};

// The settings of a step.
struct Constants {
  explicit HWY_INLINE Constants(const OptimizerStep& step)
      : rate(hn::Set(kFloats, step.learning_rate)),
        decay(hn::Set(kFloats, step.weight_decay)),
        kept(hn::Set(kFloats, 1.0F - step.learning_rate * step.weight_decay)),
        eps(hn::Set(kFloats, step.eps)),
        beta1(hn::Set(kFloats, step.beta1)),
        beta2(hn::Set(kFloats, step.beta2)),
        one_minus_beta1(hn::Set(kFloats, step.one_minus_beta1)),
        one_minus_beta2(hn::Set(kFloats, step.one_minus_beta2)),
        bias1(hn::Set(kFloats, step.bias1)),
        bias2(hn::Set(kFloats, step.bias2)),
        momentum(hn::Set(kFloats, step.momentum)) {}

  Vector rate, decay, kept, eps, beta1, beta2, one_minus_beta1, one_minus_beta2, bias1, bias2,
      momentum;
};

// What depends on the sums of a range.
struct Rates {
  Vector rate = hn::Zero(kFloats);
  Vector kept = hn::Zero(kFloats);   // factor of w
  Vector scale = hn::Zero(kFloats);  // a
};

// e: with L2 decay the gradient of the penalised loss.
template <WeightDecay kDecay>
HWY_INLINE Vector penalised(const Constants& k, Vector w, Vector g) {
  return kDecay == WeightDecay::kL2 ? hn::MulAdd(k.decay, w, g) : g;
}

// d of x.
template <WeightDecay kDecay>
HWY_INLINE Vector decayed(const Constants& k, Vector w, Vector x) {
  return kDecay == WeightDecay::kDecouple ? hn::MulAdd(k.decay, w, x) : x;
}

// w with decoupled decay, for SGD and AdaGrad.
template <WeightDecay kDecay>
HWY_INLINE Vector shrunk(const Constants& k, Vector w) {
  return kDecay == WeightDecay::kDecouple ? hn::Mul(k.kept, w) : w;
}

HWY_INLINE Vector first_moment(const Constants& k, Vector m, Vector g) {
  return hn::MulAdd(k.beta1, m, hn::Mul(k.one_minus_beta1, g));
}

HWY_INLINE Vector second_moment(const Constants& k, Vector v, Vector g) {
  return hn::MulAdd(k.beta2, v, hn::Mul(k.one_minus_beta2, hn::Mul(g, g)));
}

// x of Adam and LAMB.
HWY_INLINE Vector moment_ratio(const Constants& k, Vector m, Vector v) {
  return hn::Div(hn::Mul(k.bias1, m), hn::Add(hn::Sqrt(hn::Mul(k.bias2, v)), k.eps));
}

HWY_INLINE void add_square(Vector x, Vector& lane) { lane = hn::MulAdd(x, x, lane); }

template <WeightDecay kDecay>
struct Sgd {
  static constexpr OptimizerKind kKind = OptimizerKind::kSgd;
  static constexpr WeightDecay kDecayMode = kDecay;

  static HWY_INLINE void step(const Constants& k, const Rates&, Columns& x) {
    const Vector e = penalised<kDecay>(k, x.w, x.g);
    x.w = hn::NegMulAdd(k.rate, e, shrunk<kDecay>(k, x.w));
  }
};

template <WeightDecay kDecay>
struct Adagrad {
  static constexpr OptimizerKind kKind = OptimizerKind::kAdagrad;
  static constexpr WeightDecay kDecayMode = kDecay;

  static HWY_INLINE void step(const Constants& k, const Rates&, Columns& x) {
    const Vector e = penalised<kDecay>(k, x.w, x.g);
    x.m = hn::MulAdd(e, e, x.m);
    const Vector quotient = hn::Div(e, hn::Add(hn::Sqrt(x.m), k.eps));
    x.w = hn::NegMulAdd(k.rate, quotient, shrunk<kDecay>(k, x.w));
  }
};

template <WeightDecay kDecay>
struct RowwiseAdagrad {
  static constexpr OptimizerKind kKind = OptimizerKind::kRowwiseAdagrad;
  static constexpr WeightDecay kDecayMode = kDecay;

  template <bool kTail>
  static HWY_INLINE void sum(const Constants& k, Columns& x, const Tail&, Vector* sums) {
    add_square(penalised<kDecay>(k, x.w, x.g), sums[0]);
  }

  static HWY_INLINE Rates rates(const OptimizerStep& step, float* state, const float* sums,
                                float columns) {
    const float rate = adagrad_rate(step, *state, sums[0], columns);
    const float decayed_by = kDecay == WeightDecay::kL2 ? rate : step.learning_rate;
    return {.rate = hn::Set(kFloats, rate),
            .kept = hn::Set(kFloats, 1.0F - decayed_by * step.weight_decay)};
  }

  static HWY_INLINE void step(const Constants&, const Rates& rates, Columns& x) {
    if constexpr (kDecay != WeightDecay::kNone) x.w = hn::Mul(rates.kept, x.w);
    x.w = hn::NegMulAdd(rates.rate, x.g, x.w);
  }
};

template <WeightDecay kDecay>
struct Adam {
  static constexpr OptimizerKind kKind = OptimizerKind::kAdam;
  static constexpr WeightDecay kDecayMode = kDecay;

  static HWY_INLINE void step(const Constants& k, const Rates&, Columns& x) {
    const Vector e = penalised<kDecay>(k, x.w, x.g);
    x.m = first_moment(k, x.m, e);
    x.v = second_moment(k, x.v, e);
    const Vector d = decayed<kDecay>(k, x.w, moment_ratio(k, x.m, x.v));
    x.w = hn::NegMulAdd(k.rate, d, x.w);
  }
};

template <WeightDecay kDecay>
struct PartialRowwiseAdam {
  static constexpr OptimizerKind kKind = OptimizerKind::kPartialRowwiseAdam;
  static constexpr WeightDecay kDecayMode = kDecay;

  template <bool kTail>
  static HWY_INLINE void sum(const Constants&, Columns& x, const Tail&, Vector* sums) {
    add_square(x.g, sums[0]);
  }

  static HWY_INLINE Rates rates(const OptimizerStep& step, float* state, const float* sums,
                                float columns) {
    return {.scale = hn::Set(kFloats, partial_scale(step, *state, sums[0], columns))};
  }

  static HWY_INLINE void step(const Constants& k, const Rates& rates, Columns& x) {
    x.m = first_moment(k, x.m, x.g);
    const Vector d = decayed<kDecay>(k, x.w, hn::Mul(rates.scale, x.m));
    x.w = hn::NegMulAdd(k.rate, d, x.w);
  }
};

// In the sums, d takes the place of the gradient.
template <WeightDecay kDecay>
struct Lamb {
  static constexpr OptimizerKind kKind = OptimizerKind::kLamb;
  static constexpr WeightDecay kDecayMode = kDecay;

  template <bool kTail>
  static HWY_INLINE void sum(const Constants& k, Columns& x, const Tail& tail, Vector* sums) {
    x.m = first_moment(k, x.m, x.g);
    x.v = second_moment(k, x.v, x.g);
    x.g = decayed<kDecay>(k, x.w, moment_ratio(k, x.m, x.v));
    if constexpr (kTail) x.g = tail.only(x.g);  // eps may be 0
    add_square(x.w, sums[0]);
    add_square(x.g, sums[1]);
  }

  static HWY_INLINE Rates rates(const OptimizerStep& step, float*, const float* sums, float) {
    return {.rate = hn::Set(kFloats, trust_rate(step, sums[0], sums[1]))};
  }

  static HWY_INLINE void step(const Constants&, const Rates& rates, Columns& x) {
    x.w = hn::NegMulAdd(rates.rate, x.g, x.w);
  }
};

template <WeightDecay kDecay>
struct PartialRowwiseLamb {
  static constexpr OptimizerKind kKind = OptimizerKind::kPartialRowwiseLamb;
  static constexpr WeightDecay kDecayMode = kDecay;

  template <bool kTail>
  static HWY_INLINE void sum(const Constants& k, Columns& x, const Tail&, Vector* sums) {
    x.m = first_moment(k, x.m, x.g);
    add_square(x.g, sums[0]);
    add_square(x.m, sums[1]);
    sums[2] = hn::MulAdd(x.m, x.w, sums[2]);
    add_square(x.w, sums[3]);
  }

  static HWY_INLINE Rates rates(const OptimizerStep& step, float* state, const float* sums,
                                float columns) {
    const float a = partial_scale(step, *state, sums[0], columns);
    const float rate = trust_rate(step, sums[3], partial_directions(step, a, sums));
    return {.rate = hn::Set(kFloats, rate), .scale = hn::Set(kFloats, a)};
  }

  static HWY_INLINE void step(const Constants& k, const Rates& rates, Columns& x) {
    const Vector d = decayed<kDecay>(k, x.w, hn::Mul(rates.scale, x.m));
    x.w = hn::NegMulAdd(rates.rate, d, x.w);
  }
};

template <WeightDecay kDecay>
struct LarsSgd {
  static constexpr OptimizerKind kKind = OptimizerKind::kLarsSgd;
  static constexpr WeightDecay kDecayMode = kDecay;

  template <bool kTail>
  static HWY_INLINE void sum(const Constants&, Columns& x, const Tail&, Vector* sums) {
    add_square(x.w, sums[0]);
    add_square(x.g, sums[1]);
  }

  static HWY_INLINE Rates rates(const OptimizerStep& step, float*, const float* sums, float) {
    return {.rate = hn::Set(kFloats, lars_rate(step, sums))};
  }

  static HWY_INLINE void step(const Constants& k, const Rates& rates, Columns& x) {
    const Vector e = penalised<kDecay>(k, x.w, x.g);
    x.m = hn::MulAdd(k.momentum, x.m, hn::Mul(rates.rate, e));
    x.w = hn::Sub(x.w, x.m);
  }
};

// Do the sums move moments that step() then takes as moved?
template <class Step>
inline constexpr bool kMovesInSums =
    Step::kKind == OptimizerKind::kLamb || Step::kKind == OptimizerKind::kPartialRowwiseLamb;

template <class Step>
inline constexpr StateNeeds kNeeds = state_needs(Step::kKind);

}  // namespace shardrec::compute::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
