#include "plan/model/optimizer_step.h"

#include <cmath>

#include "compute/math/bias_correction.h"

namespace shardrec::plan {
namespace {

compute::WeightDecay decay_of(shardrec_weight_decay mode) {
  switch (mode) {
    case SHARDREC_WEIGHT_DECAY_L2:
      return compute::WeightDecay::kL2;
    case SHARDREC_WEIGHT_DECAY_DECOUPLE:
      return compute::WeightDecay::kDecouple;
    default:
      return compute::WeightDecay::kNone;
  }
}

}  // namespace

compute::OptimizerKind kind_of(shardrec_optimizer optimizer) {
  const compute::OptimizerFacts* const facts = compute::find_facts(optimizer);
  return facts == nullptr ? compute::OptimizerKind::kSgd : facts->kind;
}

compute::OptimizerStep optimizer_step(const Optimizer& optimizer, int64_t number) {
  compute::OptimizerStep step;
  step.kind = kind_of(optimizer.kind);
  step.decay_mode = decay_of(optimizer.weight_decay_mode);
  // lr / (sqrt(h / s) + eps) is lr * sqrt(s) / (sqrt(h) + eps * sqrt(s)); a decoupled decay is lr * lam as before.
  const double scale = std::sqrt(optimizer.momentum_scale);
  const bool decouples = step.decay_mode == compute::WeightDecay::kDecouple;
  step.learning_rate = static_cast<float>(optimizer.learning_rate * scale);
  step.eps = static_cast<float>(optimizer.eps * scale);
  if (step.decay_mode != compute::WeightDecay::kNone) {
    step.weight_decay = static_cast<float>(optimizer.weight_decay / (decouples ? scale : 1));
  }
  step.beta1 = static_cast<float>(optimizer.beta1);
  step.beta2 = static_cast<float>(optimizer.beta2);
  step.one_minus_beta1 = static_cast<float>(1 - optimizer.beta1);
  step.one_minus_beta2 = static_cast<float>(1 - optimizer.beta2);
  // Of the two moments; of others nothing changes from step to step.
  if (compute::facts_of(step.kind).state_count() == 2) {
    step.bias1 = compute::math::bias_correction(optimizer.beta1, number);
    step.bias2 = compute::math::bias_correction(optimizer.beta2, number);
  }
  step.momentum = static_cast<float>(optimizer.momentum);
  step.eta = static_cast<float>(optimizer.eta);
  step.max_norm = static_cast<float>(optimizer.max_norm);
  return step;
}

}  // namespace shardrec::plan
