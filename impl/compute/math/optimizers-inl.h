// The optimizers' formulas (optimizer.h), one column at a time. Each is a struct:
//   kKind, kDecayMode
//   step(k, rates, x)                   moves state and weight
// where state_needs() names sums,
//   sum(k, x, sums)                     adds to the sums: of an optimizer with one, the square of
//   summed(k, x)
//   rates(step, state, sums, columns)   moves the row value; what step() needs of the sums
// and, where kMovesFirst,
//   move(k, x)                          moves the moments, before sum() and step()
// Text of formulas: included by scalar.h and compute/cpu/kernels/simd_math-inl.h.

// A column of a row: weight, summed gradient, and what the matrices of state hold.
struct Column {
  Number w, g, m, v;
};

// The settings of a step.
struct Constants {
  SHARDREC_MATH explicit Constants(const OptimizerStep& step)
      : rate(op::number(step.learning_rate)),
        decay(op::number(step.weight_decay)),
        kept(op::number(1.0F - step.learning_rate * step.weight_decay)),
        eps(op::number(step.eps)),
        beta1(op::number(step.beta1)),
        beta2(op::number(step.beta2)),
        one_minus_beta1(op::number(step.one_minus_beta1)),
        one_minus_beta2(op::number(step.one_minus_beta2)),
        bias1(op::number(step.bias1)),
        bias2(op::number(step.bias2)),
        momentum(op::number(step.momentum)) {}

  Number rate, decay, kept, eps, beta1, beta2, one_minus_beta1, one_minus_beta2, bias1, bias2,
      momentum;
};

// What depends on the sums of a range.
struct Rates {
  Number rate = op::number(0);
  Number kept = op::number(0);   // factor of w
  Number scale = op::number(0);  // a
};

// e: with L2 decay the gradient of the penalised loss.
template <WeightDecay kDecay>
SHARDREC_MATH Number penalised(const Constants& k, Number w, Number g) {
  return kDecay == WeightDecay::kL2 ? op::fma(k.decay, w, g) : g;
}

// d of x.
template <WeightDecay kDecay>
SHARDREC_MATH Number decayed(const Constants& k, Number w, Number x) {
  return kDecay == WeightDecay::kDecouple ? op::fma(k.decay, w, x) : x;
}

// w with decoupled decay, for SGD, with momentum too, and AdaGrad.
template <WeightDecay kDecay>
SHARDREC_MATH Number shrunk(const Constants& k, Number w) {
  return kDecay == WeightDecay::kDecouple ? op::mul(k.kept, w) : w;
}

SHARDREC_MATH Number first_moment(const Constants& k, Number m, Number g) {
  return op::fma(k.beta1, m, op::mul(k.one_minus_beta1, g));
}

SHARDREC_MATH Number second_moment(const Constants& k, Number v, Number g) {
  return op::fma(k.beta2, v, op::mul(k.one_minus_beta2, op::mul(g, g)));
}

// x of Adam and LAMB.
SHARDREC_MATH Number moment_ratio(const Constants& k, Number m, Number v) {
  return op::div(op::mul(k.bias1, m), op::add(op::sqrt(op::mul(k.bias2, v)), k.eps));
}

SHARDREC_MATH void add_square(Number x, Number& lane) { lane = op::fma(x, x, lane); }

template <WeightDecay kDecay>
struct Sgd {
  static constexpr OptimizerKind kKind = OptimizerKind::kSgd;
  static constexpr WeightDecay kDecayMode = kDecay;

  SHARDREC_MATH static void step(const Constants& k, const Rates&, Column& x) {
    const Number e = penalised<kDecay>(k, x.w, x.g);
    x.w = op::fnma(k.rate, e, shrunk<kDecay>(k, x.w));
  }
};

template <WeightDecay kDecay>
struct MomentumSgd {
  static constexpr OptimizerKind kKind = OptimizerKind::kMomentumSgd;
  static constexpr WeightDecay kDecayMode = kDecay;

  SHARDREC_MATH static void step(const Constants& k, const Rates&, Column& x) {
    x.m = op::fma(k.momentum, x.m, penalised<kDecay>(k, x.w, x.g));
    x.w = op::fnma(k.rate, x.m, shrunk<kDecay>(k, x.w));
  }
};

template <WeightDecay kDecay>
struct Adagrad {
  static constexpr OptimizerKind kKind = OptimizerKind::kAdagrad;
  static constexpr WeightDecay kDecayMode = kDecay;

  SHARDREC_MATH static void step(const Constants& k, const Rates&, Column& x) {
    const Number e = penalised<kDecay>(k, x.w, x.g);
    x.m = op::fma(e, e, x.m);
    const Number quotient = op::div(e, op::add(op::sqrt(x.m), k.eps));
    x.w = op::fnma(k.rate, quotient, shrunk<kDecay>(k, x.w));
  }
};

template <WeightDecay kDecay>
struct RowwiseAdagrad {
  static constexpr OptimizerKind kKind = OptimizerKind::kRowwiseAdagrad;
  static constexpr WeightDecay kDecayMode = kDecay;

  SHARDREC_MATH static Number summed(const Constants& k, const Column& x) {
    return penalised<kDecay>(k, x.w, x.g);
  }

  SHARDREC_MATH static void sum(const Constants& k, const Column& x, Number* sums) {
    add_square(summed(k, x), sums[0]);
  }

  SHARDREC_MATH static Rates rates(const OptimizerStep& step, float* state, const float* sums,
                                   float columns) {
    const float rate = math::adagrad_rate(step, *state, sums[0], columns);
    const float decayed_by = kDecay == WeightDecay::kL2 ? rate : step.learning_rate;
    return {.rate = op::number(rate), .kept = op::number(1.0F - decayed_by * step.weight_decay)};
  }

  SHARDREC_MATH static void step(const Constants&, const Rates& rates, Column& x) {
    if constexpr (kDecay != WeightDecay::kNone) x.w = op::mul(rates.kept, x.w);
    x.w = op::fnma(rates.rate, x.g, x.w);
  }
};

template <WeightDecay kDecay>
struct Adam {
  static constexpr OptimizerKind kKind = OptimizerKind::kAdam;
  static constexpr WeightDecay kDecayMode = kDecay;

  SHARDREC_MATH static void step(const Constants& k, const Rates&, Column& x) {
    const Number e = penalised<kDecay>(k, x.w, x.g);
    x.m = first_moment(k, x.m, e);
    x.v = second_moment(k, x.v, e);
    const Number d = decayed<kDecay>(k, x.w, moment_ratio(k, x.m, x.v));
    x.w = op::fnma(k.rate, d, x.w);
  }
};

template <WeightDecay kDecay>
struct PartialRowwiseAdam {
  static constexpr OptimizerKind kKind = OptimizerKind::kPartialRowwiseAdam;
  static constexpr WeightDecay kDecayMode = kDecay;

  SHARDREC_MATH static Number summed(const Constants&, const Column& x) { return x.g; }

  SHARDREC_MATH static void sum(const Constants& k, const Column& x, Number* sums) {
    add_square(summed(k, x), sums[0]);
  }

  SHARDREC_MATH static Rates rates(const OptimizerStep& step, float* state, const float* sums,
                                   float columns) {
    return {.scale = op::number(math::partial_scale(step, *state, sums[0], columns))};
  }

  SHARDREC_MATH static void step(const Constants& k, const Rates& rates, Column& x) {
    x.m = first_moment(k, x.m, x.g);
    const Number d = decayed<kDecay>(k, x.w, op::mul(rates.scale, x.m));
    x.w = op::fnma(k.rate, d, x.w);
  }
};

// move() puts d in the place of the gradient. L2 decay is for elements only.
template <WeightDecay kDecay>
struct Lamb {
  static constexpr OptimizerKind kKind = OptimizerKind::kLamb;
  static constexpr WeightDecay kDecayMode = kDecay;

  SHARDREC_MATH static Number direction(const Constants& k, const Column& x) {
    return decayed<kDecay>(k, x.w, moment_ratio(k, x.m, x.v));
  }

  SHARDREC_MATH static void move(const Constants& k, Column& x) {
    const Number e = penalised<kDecay>(k, x.w, x.g);
    x.m = first_moment(k, x.m, e);
    x.v = second_moment(k, x.v, e);
    x.g = direction(k, x);
  }

  SHARDREC_MATH static void sum(const Constants&, const Column& x, Number* sums) {
    add_square(x.w, sums[0]);
    add_square(x.g, sums[1]);
  }

  SHARDREC_MATH static Rates rates(const OptimizerStep& step, float*, const float* sums, float) {
    return {.rate = op::number(math::trust_rate(step, sums[0], sums[1]))};
  }

  SHARDREC_MATH static void step(const Constants&, const Rates& rates, Column& x) {
    x.w = op::fnma(rates.rate, x.g, x.w);
  }
};

template <WeightDecay kDecay>
struct PartialRowwiseLamb {
  static constexpr OptimizerKind kKind = OptimizerKind::kPartialRowwiseLamb;
  static constexpr WeightDecay kDecayMode = kDecay;

  SHARDREC_MATH static void move(const Constants& k, Column& x) { x.m = first_moment(k, x.m, x.g); }

  SHARDREC_MATH static void sum(const Constants&, const Column& x, Number* sums) {
    add_square(x.g, sums[0]);
    add_square(x.m, sums[1]);
    sums[2] = op::fma(x.m, x.w, sums[2]);
    add_square(x.w, sums[3]);
  }

  SHARDREC_MATH static Rates rates(const OptimizerStep& step, float* state, const float* sums,
                                   float columns) {
    const float a = math::partial_scale(step, *state, sums[0], columns);
    const float rate = math::trust_rate(step, sums[3], math::partial_directions(step, a, sums));
    return {.rate = op::number(rate), .scale = op::number(a)};
  }

  SHARDREC_MATH static void step(const Constants& k, const Rates& rates, Column& x) {
    const Number d = decayed<kDecay>(k, x.w, op::mul(rates.scale, x.m));
    x.w = op::fnma(rates.rate, d, x.w);
  }
};

template <WeightDecay kDecay>
struct LarsSgd {
  static constexpr OptimizerKind kKind = OptimizerKind::kLarsSgd;
  static constexpr WeightDecay kDecayMode = kDecay;

  SHARDREC_MATH static void sum(const Constants&, const Column& x, Number* sums) {
    add_square(x.w, sums[0]);
    add_square(x.g, sums[1]);
  }

  SHARDREC_MATH static Rates rates(const OptimizerStep& step, float*, const float* sums, float) {
    return {.rate = op::number(math::lars_rate(step, sums))};
  }

  SHARDREC_MATH static void step(const Constants& k, const Rates& rates, Column& x) {
    const Number e = penalised<kDecay>(k, x.w, x.g);
    x.m = op::fma(k.momentum, x.m, op::mul(rates.rate, e));
    x.w = op::sub(x.w, x.m);
  }
};

template <class Step>
inline constexpr StateNeeds kNeeds = state_needs(Step::kKind);

template <class Step>
inline constexpr bool kMovesFirst =
    Step::kKind == OptimizerKind::kLamb || Step::kKind == OptimizerKind::kPartialRowwiseLamb;
