// The optimizers' formulas as the papers and DESIGN have them, in bounded doubles: what the kernels
// are checked against.
#pragma once

#include <vector>

#include "compute/bounded.h"
#include "compute/update_jobs.h"

namespace shardrec::compute {

// One range of a row, before and after a step.
struct ReferenceRange {
  std::vector<Bounded> w, g, m, v;
  Bounded state = 0;
};

inline Bounded sum_of_products(const std::vector<Bounded>& x, const std::vector<Bounded>& y) {
  Bounded sum = 0;
  for (size_t c = 0; c < x.size(); ++c) sum = sum + x[c] * y[c];
  return sum;
}

class Reference {
 public:
  explicit Reference(const OptimizerStep& step)
      : step_(step),
        lr_(step.learning_rate),
        decay_(step.decay_mode == WeightDecay::kNone ? 0 : step.weight_decay),
        l2_(step.decay_mode == WeightDecay::kL2) {}

  // The sums that the optimizer takes over a range.
  std::vector<Bounded> sums(const ReferenceRange& r) const {
    switch (step_.kind) {
      case OptimizerKind::kRowwiseAdagrad: {
        const std::vector<Bounded> e = penalised(r);
        return {sum_of_products(e, e)};
      }
      case OptimizerKind::kPartialRowwiseAdam:
        return {sum_of_products(r.g, r.g)};
      case OptimizerKind::kLamb: {
        ReferenceRange moved = r;
        move_moments(moved);
        const std::vector<Bounded> d = directions(moved);
        return {sum_of_products(r.w, r.w), sum_of_products(d, d)};
      }
      case OptimizerKind::kPartialRowwiseLamb: {
        ReferenceRange moved = r;
        move_first_moment(moved);
        return {sum_of_products(r.g, r.g), sum_of_products(moved.m, moved.m),
                sum_of_products(moved.m, r.w), sum_of_products(r.w, r.w)};
      }
      case OptimizerKind::kLarsSgd:
        return {sum_of_products(r.w, r.w), sum_of_products(r.g, r.g)};
      default:
        return {};
    }
  }

  // The step, with sums over `columns` columns.
  void step(ReferenceRange& r, const std::vector<Bounded>& sums, double columns) const {
    switch (step_.kind) {
      case OptimizerKind::kSgd:
        return move(r, lr_, penalised(r));
      case OptimizerKind::kAdagrad: {
        std::vector<Bounded> e = penalised(r);
        for (size_t c = 0; c < e.size(); ++c) {
          r.m[c] = r.m[c] + e[c] * e[c];
          e[c] = e[c] / (sqrt(r.m[c]) + step_.eps);
        }
        return move(r, lr_, e);
      }
      case OptimizerKind::kRowwiseAdagrad: {
        r.state = r.state + sums[0] / columns;
        const Bounded rate = lr_ / (sqrt(r.state) + step_.eps);
        for (size_t c = 0; c < r.w.size(); ++c) {
          const Bounded kept = Bounded(1) - (l2_ ? rate : lr_) * decay_;
          r.w[c] = kept * r.w[c] - rate * r.g[c];
        }
        return;
      }
      case OptimizerKind::kAdam:
        move_moments(r);
        return subtract(r, lr_, directions(r));
      case OptimizerKind::kPartialRowwiseAdam: {
        move_first_moment(r);
        return subtract(r, lr_, partial_directions(r, scale(r, sums[0] / columns)));
      }
      case OptimizerKind::kLamb: {
        move_moments(r);
        return subtract(r, lr_ * (sqrt(sums[0]) / sqrt(sums[1])), directions(r));
      }
      case OptimizerKind::kPartialRowwiseLamb: {
        move_first_moment(r);
        const Bounded a = scale(r, sums[0] / columns);
        const Bounded squares =
            a * a * sums[1] + Bounded(2) * a * decay_ * sums[2] + decay_ * decay_ * sums[3];
        return subtract(r, lr_ * (sqrt(sums[3]) / sqrt(squares)), partial_directions(r, a));
      }
      case OptimizerKind::kLarsSgd: {
        const Bounded norm = sqrt(sums[0]);
        const Bounded rate = lr_ * step_.eta * norm / (sqrt(sums[1]) + decay_ * norm);
        for (size_t c = 0; c < r.w.size(); ++c) {
          r.m[c] = r.m[c] * step_.momentum + rate * (r.g[c] + decay_ * r.w[c]);
          r.w[c] = r.w[c] - r.m[c];
        }
        return;
      }
      case OptimizerKind::kMomentumSgd:
        return;  // rows have none
    }
  }

 private:
  std::vector<Bounded> penalised(const ReferenceRange& r) const {
    std::vector<Bounded> e = r.g;
    for (size_t c = 0; l2_ && c < e.size(); ++c) e[c] = e[c] + decay_ * r.w[c];
    return e;
  }

  // w = (1 - lr * lam) * w - rate * x where the decay is decoupled from a plain step.
  void move(ReferenceRange& r, Bounded rate, const std::vector<Bounded>& x) const {
    for (size_t c = 0; c < x.size(); ++c) {
      const Bounded kept = l2_ ? r.w[c] : (Bounded(1) - lr_ * decay_) * r.w[c];
      r.w[c] = kept - rate * x[c];
    }
  }

  static void subtract(ReferenceRange& r, Bounded rate, const std::vector<Bounded>& d) {
    for (size_t c = 0; c < d.size(); ++c) r.w[c] = r.w[c] - rate * d[c];
  }

  void move_first_moment(ReferenceRange& r) const {
    for (size_t c = 0; c < r.m.size(); ++c) {
      r.m[c] = r.m[c] * step_.beta1 + r.g[c] * step_.one_minus_beta1;
    }
  }

  void move_moments(ReferenceRange& r) const {
    move_first_moment(r);
    for (size_t c = 0; c < r.v.size(); ++c) {
      r.v[c] = r.v[c] * step_.beta2 + r.g[c] * r.g[c] * step_.one_minus_beta2;
    }
  }

  std::vector<Bounded> directions(const ReferenceRange& r) const {
    std::vector<Bounded> d;
    for (size_t c = 0; c < r.w.size(); ++c) {
      d.push_back(r.m[c] * step_.bias1 / (sqrt(r.v[c] * step_.bias2) + step_.eps) +
                  decay_ * r.w[c]);
    }
    return d;
  }

  // Moves v; a.
  Bounded scale(ReferenceRange& r, Bounded mean_square) const {
    r.state = r.state * step_.beta2 + mean_square * step_.one_minus_beta2;
    return Bounded(step_.bias1) / (sqrt(r.state * step_.bias2) + step_.eps);
  }

  std::vector<Bounded> partial_directions(const ReferenceRange& r, Bounded a) const {
    std::vector<Bounded> d;
    for (size_t c = 0; c < r.w.size(); ++c) d.push_back(a * r.m[c] + decay_ * r.w[c]);
    return d;
  }

  OptimizerStep step_;
  Bounded lr_;
  Bounded decay_;
  bool l2_;
};

// The summed gradient of columns of a unique row.
inline std::vector<Bounded> gradient_of(const RowUpdate& job, int64_t u, ColumnRange range) {
  std::vector<Bounded> sums;
  for (int64_t c = range.begin; c < range.end; ++c) {
    Bounded sum = 0;
    for (int64_t o = job.run[u]; o < job.run[u + 1]; ++o) {
      const double weight = job.weights == nullptr ? 1.0 : job.weights[o];
      const double gradient = static_cast<double>(job.gradients[job.bags[o]][c]);
      sum = sum + Bounded(weight) * (gradient * static_cast<double>(job.gradient_scale));
    }
    // Summed in blocks, the partial sums may be larger than those above.
    sum.error *= 2;
    sums.push_back(sum);
  }
  return sums;
}

// Unique row u of a job before its update, over a range of columns that has statistic s.
inline ReferenceRange range_before(const UpdateJob& job, const RowUpdate& view, int64_t u,
                                   ColumnRange range, size_t s) {
  const auto row = static_cast<size_t>(view.rows[u]);
  ReferenceRange r;
  r.g = gradient_of(view, u, range);
  for (int64_t c = range.begin; c < range.end; ++c) {
    const size_t at = row * static_cast<size_t>(view.width) + static_cast<size_t>(c);
    r.w.push_back(static_cast<double>(job.before(row, c)));
    if (!job.start().matrices.empty()) r.m.push_back(job.start().matrices[0][at]);
    if (job.start().matrices.size() > 1) r.v.push_back(job.start().matrices[1][at]);
  }
  if (!job.start().states.empty()) r.state = job.start().states[s][row];
  return r;
}

}  // namespace shardrec::compute
