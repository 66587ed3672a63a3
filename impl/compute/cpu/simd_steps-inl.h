// The optimizers' formulas (optimizer.h), one vector of columns at a time. Each is a struct:
//   kKind
//   step<tail>(k, rates, range, column)    moves state and w
// and, where state_needs() names sums,
//   sum<store, tail>(k, range, column, sums)   adds to the 16-lane sums; with `store` the moments
//                                              move, else nothing changes
//   rates(step, state, sums, columns)          moves the row value; what step() needs of the sums
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

// A range of columns of a row: pointers to its first column.
struct RangeOfRow {
  size_t columns = 0;
  float* w = nullptr;
  float* g = nullptr;      // scratch: may be overwritten
  float* m = nullptr;      // first matrix
  float* v = nullptr;      // second matrix
  float* state = nullptr;  // row value
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

  template <bool kTail>
  static HWY_INLINE void step(const Constants& k, const Rates&, const RangeOfRow& r, size_t c,
                              const Tail& tail) {
    const Vector w = load<kTail>(r.w + c, tail);
    const Vector e = penalised<kDecay>(k, w, load<kTail>(r.g + c, tail));
    store<kTail>(hn::NegMulAdd(k.rate, e, shrunk<kDecay>(k, w)), r.w + c, tail);
  }
};

template <WeightDecay kDecay>
struct Adagrad {
  static constexpr OptimizerKind kKind = OptimizerKind::kAdagrad;

  template <bool kTail>
  static HWY_INLINE void step(const Constants& k, const Rates&, const RangeOfRow& r, size_t c,
                              const Tail& tail) {
    const Vector w = load<kTail>(r.w + c, tail);
    const Vector e = penalised<kDecay>(k, w, load<kTail>(r.g + c, tail));
    const Vector h = hn::MulAdd(e, e, load<kTail>(r.m + c, tail));
    store<kTail>(h, r.m + c, tail);
    const Vector quotient = hn::Div(e, hn::Add(hn::Sqrt(h), k.eps));
    store<kTail>(hn::NegMulAdd(k.rate, quotient, shrunk<kDecay>(k, w)), r.w + c, tail);
  }
};

template <WeightDecay kDecay>
struct RowwiseAdagrad {
  static constexpr OptimizerKind kKind = OptimizerKind::kRowwiseAdagrad;

  template <bool kStore, bool kTail>
  static HWY_INLINE void sum(const Constants& k, const RangeOfRow& r, size_t c, const Tail& tail,
                             Vector* sums) {
    Vector e = load<kTail>(r.g + c, tail);
    if constexpr (kDecay == WeightDecay::kL2) {
      e = penalised<kDecay>(k, load<kTail>(r.w + c, tail), e);
    }
    add_square(e, sums[0]);
  }

  static HWY_INLINE Rates rates(const OptimizerStep& step, float* state, const float* sums,
                                float columns) {
    const float rate = adagrad_rate(step, *state, sums[0], columns);
    const float decayed_by = kDecay == WeightDecay::kL2 ? rate : step.learning_rate;
    return {.rate = hn::Set(kFloats, rate),
            .kept = hn::Set(kFloats, 1.0F - decayed_by * step.weight_decay)};
  }

  template <bool kTail>
  static HWY_INLINE void step(const Constants&, const Rates& rates, const RangeOfRow& r, size_t c,
                              const Tail& tail) {
    Vector w = load<kTail>(r.w + c, tail);
    if constexpr (kDecay != WeightDecay::kNone) w = hn::Mul(rates.kept, w);
    store<kTail>(hn::NegMulAdd(rates.rate, load<kTail>(r.g + c, tail), w), r.w + c, tail);
  }
};

template <WeightDecay kDecay>
struct Adam {
  static constexpr OptimizerKind kKind = OptimizerKind::kAdam;

  template <bool kTail>
  static HWY_INLINE void step(const Constants& k, const Rates&, const RangeOfRow& r, size_t c,
                              const Tail& tail) {
    const Vector w = load<kTail>(r.w + c, tail);
    const Vector g = load<kTail>(r.g + c, tail);
    const Vector m = first_moment(k, load<kTail>(r.m + c, tail), g);
    const Vector v = second_moment(k, load<kTail>(r.v + c, tail), g);
    store<kTail>(m, r.m + c, tail);
    store<kTail>(v, r.v + c, tail);
    const Vector d = decayed<kDecay>(k, w, moment_ratio(k, m, v));
    store<kTail>(hn::NegMulAdd(k.rate, d, w), r.w + c, tail);
  }
};

template <WeightDecay kDecay>
struct PartialRowwiseAdam {
  static constexpr OptimizerKind kKind = OptimizerKind::kPartialRowwiseAdam;

  template <bool kStore, bool kTail>
  static HWY_INLINE void sum(const Constants&, const RangeOfRow& r, size_t c, const Tail& tail,
                             Vector* sums) {
    add_square(load<kTail>(r.g + c, tail), sums[0]);
  }

  static HWY_INLINE Rates rates(const OptimizerStep& step, float* state, const float* sums,
                                float columns) {
    return {.scale = hn::Set(kFloats, partial_scale(step, *state, sums[0], columns))};
  }

  template <bool kTail>
  static HWY_INLINE void step(const Constants& k, const Rates& rates, const RangeOfRow& r, size_t c,
                              const Tail& tail) {
    const Vector w = load<kTail>(r.w + c, tail);
    const Vector m = first_moment(k, load<kTail>(r.m + c, tail), load<kTail>(r.g + c, tail));
    store<kTail>(m, r.m + c, tail);
    const Vector d = decayed<kDecay>(k, w, hn::Mul(rates.scale, m));
    store<kTail>(hn::NegMulAdd(k.rate, d, w), r.w + c, tail);
  }
};

// With `store` d takes the place of the gradient.
template <WeightDecay kDecay>
struct Lamb {
  static constexpr OptimizerKind kKind = OptimizerKind::kLamb;

  template <bool kStore, bool kTail>
  static HWY_INLINE void sum(const Constants& k, const RangeOfRow& r, size_t c, const Tail& tail,
                             Vector* sums) {
    const Vector w = load<kTail>(r.w + c, tail);
    const Vector g = load<kTail>(r.g + c, tail);
    const Vector m = first_moment(k, load<kTail>(r.m + c, tail), g);
    const Vector v = second_moment(k, load<kTail>(r.v + c, tail), g);
    Vector d = decayed<kDecay>(k, w, moment_ratio(k, m, v));
    if constexpr (kTail) d = tail.only(d);  // eps may be 0
    if constexpr (kStore) {
      store<kTail>(m, r.m + c, tail);
      store<kTail>(v, r.v + c, tail);
      store<kTail>(d, r.g + c, tail);
    }
    add_square(w, sums[0]);
    add_square(d, sums[1]);
  }

  static HWY_INLINE Rates rates(const OptimizerStep& step, float*, const float* sums, float) {
    return {.rate = hn::Set(kFloats, trust_rate(step, sums[0], sums[1]))};
  }

  template <bool kTail>
  static HWY_INLINE void step(const Constants&, const Rates& rates, const RangeOfRow& r, size_t c,
                              const Tail& tail) {
    const Vector d = load<kTail>(r.g + c, tail);
    store<kTail>(hn::NegMulAdd(rates.rate, d, load<kTail>(r.w + c, tail)), r.w + c, tail);
  }
};

template <WeightDecay kDecay>
struct PartialRowwiseLamb {
  static constexpr OptimizerKind kKind = OptimizerKind::kPartialRowwiseLamb;

  template <bool kStore, bool kTail>
  static HWY_INLINE void sum(const Constants& k, const RangeOfRow& r, size_t c, const Tail& tail,
                             Vector* sums) {
    const Vector w = load<kTail>(r.w + c, tail);
    const Vector g = load<kTail>(r.g + c, tail);
    const Vector m = first_moment(k, load<kTail>(r.m + c, tail), g);
    if constexpr (kStore) store<kTail>(m, r.m + c, tail);
    add_square(g, sums[0]);
    add_square(m, sums[1]);
    sums[2] = hn::MulAdd(m, w, sums[2]);
    add_square(w, sums[3]);
  }

  static HWY_INLINE Rates rates(const OptimizerStep& step, float* state, const float* sums,
                                float columns) {
    const float a = partial_scale(step, *state, sums[0], columns);
    const float rate = trust_rate(step, sums[3], partial_directions(step, a, sums));
    return {.rate = hn::Set(kFloats, rate), .scale = hn::Set(kFloats, a)};
  }

  template <bool kTail>
  static HWY_INLINE void step(const Constants& k, const Rates& rates, const RangeOfRow& r, size_t c,
                              const Tail& tail) {
    const Vector w = load<kTail>(r.w + c, tail);
    const Vector d = decayed<kDecay>(k, w, hn::Mul(rates.scale, load<kTail>(r.m + c, tail)));
    store<kTail>(hn::NegMulAdd(rates.rate, d, w), r.w + c, tail);
  }
};

template <WeightDecay kDecay>
struct LarsSgd {
  static constexpr OptimizerKind kKind = OptimizerKind::kLarsSgd;

  template <bool kStore, bool kTail>
  static HWY_INLINE void sum(const Constants&, const RangeOfRow& r, size_t c, const Tail& tail,
                             Vector* sums) {
    add_square(load<kTail>(r.w + c, tail), sums[0]);
    add_square(load<kTail>(r.g + c, tail), sums[1]);
  }

  static HWY_INLINE Rates rates(const OptimizerStep& step, float*, const float* sums, float) {
    return {.rate = hn::Set(kFloats, lars_rate(step, sums))};
  }

  template <bool kTail>
  static HWY_INLINE void step(const Constants& k, const Rates& rates, const RangeOfRow& r, size_t c,
                              const Tail& tail) {
    const Vector w = load<kTail>(r.w + c, tail);
    const Vector e = penalised<kDecay>(k, w, load<kTail>(r.g + c, tail));
    const Vector m = hn::MulAdd(k.momentum, load<kTail>(r.m + c, tail), hn::Mul(rates.rate, e));
    store<kTail>(m, r.m + c, tail);
    store<kTail>(hn::Sub(w, m), r.w + c, tail);
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
