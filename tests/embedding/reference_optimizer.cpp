#include "embedding/reference_optimizer.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "embedding/half_matrix.h"

namespace shardrec::test {
namespace {

double norm(std::span<const double> x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

double round_weight(double x, shardrec_dtype dtype) {
  if (dtype == SHARDREC_FLOAT16) return round_to(x, 11, -14);
  if (dtype == SHARDREC_BFLOAT16) return round_to(x, 8, -126);
  return x;
}

// m and v are updated; the directions of Adam, decay included.
std::vector<double> adam_direction(const OptimizerSpec& o, int64_t update, const ReferenceRow& row,
                                   bool partial, double decay) {
  const size_t n = row.weights.size();
  const auto k = static_cast<double>(update);
  double mean_square = 0;
  for (const double g : row.gradient) mean_square += g * g / static_cast<double>(n);
  const std::span<double> m = row.states[0];
  const std::span<double> v = row.states[1];
  if (partial) {
    const double second = o.beta2 * v[0] + (1 - o.beta2) * mean_square;
    std::fill(v.begin(), v.end(), second);
  }
  std::vector<double> direction(n);
  for (size_t c = 0; c < n; ++c) {
    const double g = row.gradient[c];
    m[c] = o.beta1 * m[c] + (1 - o.beta1) * g;
    if (!partial) v[c] = o.beta2 * v[c] + (1 - o.beta2) * g * g;
    const double first = m[c] / (1 - std::pow(o.beta1, k));
    const double second = v[partial ? 0 : c] / (1 - std::pow(o.beta2, k));
    direction[c] = first / (std::sqrt(second) + o.eps) + decay * row.weights[c];
  }
  return direction;
}

}  // namespace

void reference_step(const OptimizerSpec& o, int64_t update, const ReferenceRow& row) {
  const size_t n = row.weights.size();
  const std::span<double> w = row.weights;
  const std::span<const double> g = row.gradient;
  const double lr = o.learning_rate;
  const double decay = o.decay_mode == SHARDREC_WEIGHT_DECAY_NONE ? 0 : o.weight_decay;
  const bool l2 = o.decay_mode == SHARDREC_WEIGHT_DECAY_L2;
  const double keep = l2 ? 1 : 1 - lr * decay;  // SGD, AdaGrad
  std::vector<double> e(g.begin(), g.end());
  for (size_t c = 0; c < n && l2; ++c) e[c] += decay * w[c];

  switch (o.kind) {
    case SHARDREC_OPTIMIZER_SGD:
      for (size_t c = 0; c < n; ++c) w[c] = keep * w[c] - lr * e[c];
      break;
    case SHARDREC_OPTIMIZER_ADAGRAD:
      for (size_t c = 0; c < n; ++c) {
        double& h = row.states[0][c];
        h += e[c] * e[c];
        w[c] = keep * w[c] - lr * e[c] / (std::sqrt(h) + o.eps);
      }
      break;
    case SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD: {
      const double h = row.states[0][0] + norm(e) * norm(e) / static_cast<double>(n);
      std::fill(row.states[0].begin(), row.states[0].end(), h);
      const double rate = lr / (std::sqrt(h / o.momentum_scale) + o.eps);
      for (size_t c = 0; c < n; ++c) w[c] = (l2 ? 1 - rate * decay : keep) * w[c] - rate * g[c];
      break;
    }
    case SHARDREC_OPTIMIZER_ADAM:
    case SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_ADAM: {
      const auto direction =
          adam_direction(o, update, row, o.kind == SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_ADAM, decay);
      for (size_t c = 0; c < n; ++c) w[c] -= lr * direction[c];
      break;
    }
    case SHARDREC_OPTIMIZER_LAMB:
    case SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_LAMB: {
      const auto direction =
          adam_direction(o, update, row, o.kind == SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_LAMB, decay);
      const double above = norm(w);
      const double below = norm(direction);
      const double ratio = above == 0 || below == 0 ? 1 : above / below;
      for (size_t c = 0; c < n; ++c) w[c] -= lr * ratio * direction[c];
      break;
    }
    default: {  // LARS
      const double size = norm(w);
      const double below = norm(g) + decay * size;
      const double rate = size == 0 || below == 0 ? lr : lr * o.eta * size / below;
      for (size_t c = 0; c < n; ++c) {
        double& m = row.states[0][c];
        m = o.momentum * m + rate * e[c];
        w[c] -= m;
      }
      break;
    }
  }
  for (double& value : w) value = round_weight(value, row.dtype);
  const double size = norm(w);
  if (o.max_norm > 0 && size > o.max_norm) {
    for (double& value : w) value = round_weight(value * o.max_norm / size, row.dtype);
  }
}

}  // namespace shardrec::test
