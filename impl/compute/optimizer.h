// The fused optimizers: what each keeps, sums and does to a touched row, in fp32, with fused
// multiply-adds where written fma and every other operation rounded on its own.
//
// g is the row's summed gradient, w the row, lr the rate, lam the weight decay; D is the number of
// columns of a range of sums and SUM(x * y) the 16-lane sum over it (kernels.h). A row touched by a
// zero gradient is stepped like any other.
//
//   kSgd              NONE w = fma(-lr, g, w); L2 w = fma(-lr, fma(lam, w, g), w);
//                     DECOUPLE w = fma(-lr, g, (1 - lr * lam) * w)
//   kAdagrad          e = g, L2 e = fma(lam, w, g); h = fma(e, e, h);
//                     w = fma(-lr, e / (sqrt(h) + eps), c * w), c = 1 - lr * lam for DECOUPLE, else
//                     w itself in place of c * w
//   kRowwiseAdagrad   e as above, h = h + SUM(e * e) / D; k = lr / (sqrt(h) + eps);
//                     NONE w = fma(-k, g, w); L2 w = fma(-k, g, (1 - k * lam) * w);
//                     DECOUPLE w = fma(-k, g, (1 - lr * lam) * w)
//   kAdam             m = fma(beta1, m, one_minus_beta1 * g);
//                     v = fma(beta2, v, one_minus_beta2 * (g * g));
//                     x = (bias1 * m) / (sqrt(bias2 * v) + eps);
//                     d = x, DECOUPLE d = fma(lam, w, x); w = fma(-lr, d, w)
//   kPartialRowwiseAdam
//                     m as above; v = fma(beta2, v, one_minus_beta2 * (SUM(g * g) / D));
//                     a = bias1 / (sqrt(bias2 * v) + eps); x = a * m; d and w as above
//   kLamb             m, v, d as kAdam; W = SUM(w * w), R = SUM(d * d);
//                     k = lr * (sqrt(W) / sqrt(R)), lr where W = 0 or R <= 0; w = fma(-k, d, w)
//   kPartialRowwiseLamb
//                     m, v, a, d as kPartialRowwiseAdam; k as kLamb, with R = (a * a) * SUM(m * m),
//                     DECOUPLE R = fma(lam * lam, W, fma(2 * (a * lam), SUM(m * w), that))
//   kLarsSgd          W = sqrt(SUM(w * w)), G = sqrt(SUM(g * g)), L2 G = fma(lam, W, G);
//                     a = ((lr * eta) * W) / G, lr where W = 0 or G = 0;
//                     m = fma(momentum, m, a * e), e = g, L2 e = fma(lam, w, g); w = w - m
//
// Of elements only (kernels.h: ElementUpdate), never of rows:
//   kMomentumSgd      m = fma(momentum, m, e), e = g, L2 e = fma(lam, w, g);
//                     w = fma(-lr, m, c * w), c as for kAdagrad (PyTorch's SGD without dampening)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace shardrec::compute {

enum class OptimizerKind : uint8_t {
  kSgd,
  kAdagrad,
  kRowwiseAdagrad,
  kAdam,
  kPartialRowwiseAdam,
  kLamb,
  kPartialRowwiseLamb,
  kLarsSgd,
  kMomentumSgd,
};
inline constexpr size_t kOptimizerKinds = 9;
inline constexpr size_t kRowOptimizerKinds = 8;  // the first of them: those that rows have

enum class WeightDecay : uint8_t { kNone, kL2, kDecouple };

// What an optimizer keeps and sums.
struct StateNeeds {
  int matrices = 0;    // floats per element: h | m, v
  int row_values = 0;  // floats per row and range of sums: h | v
  int sums = 0;        // per row and range, in the order below
};

// Sums: kRowwiseAdagrad {SUM(e * e)}; kPartialRowwiseAdam {SUM(g * g)}; kLamb {SUM(w * w),
// SUM(d * d)}; kPartialRowwiseLamb {SUM(g * g), SUM(m * m), SUM(m * w), SUM(w * w)}; kLarsSgd
// {SUM(w * w), SUM(g * g)}: of w before the step, and of m after it.
inline constexpr int kMostSums = 4;

constexpr StateNeeds state_needs(OptimizerKind kind) noexcept {
  constexpr std::array<StateNeeds, kOptimizerKinds> kNeeds = {{
      {0, 0, 0},  // kSgd
      {1, 0, 0},  // kAdagrad: sum
      {0, 1, 1},  // kRowwiseAdagrad: sum
      {2, 0, 0},  // kAdam: exp_avg, exp_avg_sq
      {1, 1, 1},  // kPartialRowwiseAdam: exp_avg | exp_avg_sq
      {2, 0, 2},  // kLamb: exp_avg, exp_avg_sq
      {1, 1, 4},  // kPartialRowwiseLamb: exp_avg | exp_avg_sq
      {1, 0, 2},  // kLarsSgd: momentum_buffer
      {1, 0, 0},  // kMomentumSgd: momentum
  }};
  return kNeeds[static_cast<size_t>(kind)];
}

// Is there a formula of rows above for the pair?
constexpr bool accepts(OptimizerKind kind, WeightDecay decay) noexcept {
  switch (kind) {
    case OptimizerKind::kSgd:
    case OptimizerKind::kAdagrad:
    case OptimizerKind::kRowwiseAdagrad:
      return true;
    case OptimizerKind::kLarsSgd:
      return decay != WeightDecay::kDecouple;
    case OptimizerKind::kMomentumSgd:
      return false;
    default:
      return decay != WeightDecay::kL2;
  }
}

// The settings of one step. All are finite; accepts(kind, decay_mode) holds.
struct OptimizerStep {
  OptimizerKind kind = OptimizerKind::kSgd;
  WeightDecay decay_mode = WeightDecay::kNone;
  float learning_rate = 0;
  float eps = 0;
  float weight_decay = 0;
  // Rounded once from the double settings, each on its own: 1 - 0.999F is off by 5e-5.
  float beta1 = 0;
  float beta2 = 0;
  float one_minus_beta1 = 1;
  float one_minus_beta2 = 1;
  float bias1 = 1;  // 1 / (1 - beta1^k) of step k = 1, 2, ...
  float bias2 = 1;  // 1 / (1 - beta2^k)
  float momentum = 0;
  float eta = 0;
  float max_norm = 0;  // 0: none
};

}  // namespace shardrec::compute
