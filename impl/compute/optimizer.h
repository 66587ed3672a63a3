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

#include "shardrec/options.h"

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

// The optimizers of rows in the order of OptimizerKind, by the names of their formulas
// (math/optimizers-inl.h): tables of what is compiled for each are made of this list.
#define SHARDREC_ROW_OPTIMIZERS(OPTIMIZER) \
  OPTIMIZER(Sgd)                           \
  OPTIMIZER(Adagrad)                       \
  OPTIMIZER(RowwiseAdagrad)                \
  OPTIMIZER(Adam)                          \
  OPTIMIZER(PartialRowwiseAdam)            \
  OPTIMIZER(Lamb)                          \
  OPTIMIZER(PartialRowwiseLamb)            \
  OPTIMIZER(LarsSgd)

enum class WeightDecay : uint8_t { kNone, kL2, kDecouple };

// A state that an optimizer keeps, in fp32: h | m, v.
struct OptimizerState {
  const char* name = nullptr;  // as PyTorch and TorchRec call it
  bool by_row = false;         // a value per row and range of sums, else per element
  const char* layer_name =
      nullptr;              // in checkpoints of layers and DDP parameters; null: these have none
  bool of_squares = false;  // what it adds up is at least 0
};

// What there is to know of an optimizer, but for its formula.
struct OptimizerFacts {
  OptimizerKind kind = OptimizerKind::kSgd;
  shardrec_optimizer optimizer = SHARDREC_OPTIMIZER_SGD;
  const char* name = nullptr;  // in models, plans and checkpoints
  bool of_tables = false;      // where it may be used
  bool of_layers = false;      // likewise: layers and DDP parameters
  bool l2 = false;             // the weight decays that its formula has, beside none
  bool decouple = false;
  bool momentum = false;  // is the setting of that name in the formula?
  // Sums per row and range of columns: kRowwiseAdagrad {SUM(e * e)}; kPartialRowwiseAdam {SUM(g * g)}; kLamb
  // {SUM(w * w), SUM(d * d)}; kPartialRowwiseLamb {SUM(g * g), SUM(m * m), SUM(m * w), SUM(w * w)}; kLarsSgd
  // {SUM(w * w), SUM(g * g)}: of w before the step, and of m after it.
  int sums = 0;
  std::array<OptimizerState, 2> states = {};

  constexpr size_t state_count() const noexcept {
    size_t count = 0;
    while (count < states.size() && states[count].name != nullptr) ++count;
    return count;
  }
};
inline constexpr int kMostSums = 4;

// One row each, in the order of OptimizerKind.
inline constexpr std::array<OptimizerFacts, kOptimizerKinds> kOptimizers = {{
    {.kind = OptimizerKind::kSgd,
     .optimizer = SHARDREC_OPTIMIZER_SGD,
     .name = "sgd",
     .of_tables = true,
     .of_layers = true,
     .l2 = true,
     .decouple = true},
    {.kind = OptimizerKind::kAdagrad,
     .optimizer = SHARDREC_OPTIMIZER_ADAGRAD,
     .name = "adagrad",
     .of_tables = true,
     .of_layers = true,
     .l2 = true,
     .decouple = true,
     .states = {{{"sum", false, "sum", true}}}},
    {.kind = OptimizerKind::kRowwiseAdagrad,
     .optimizer = SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD,
     .name = "rowwise_adagrad",
     .of_tables = true,
     .l2 = true,
     .decouple = true,
     .sums = 1,
     .states = {{{"sum", true, nullptr, true}}}},
    {.kind = OptimizerKind::kAdam,
     .optimizer = SHARDREC_OPTIMIZER_ADAM,
     .name = "adam",
     .of_tables = true,
     .of_layers = true,
     .decouple = true,
     .states = {{{"exp_avg", false, "mean"}, {"exp_avg_sq", false, "square", true}}}},
    {.kind = OptimizerKind::kPartialRowwiseAdam,
     .optimizer = SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_ADAM,
     .name = "partial_rowwise_adam",
     .of_tables = true,
     .decouple = true,
     .sums = 1,
     .states = {{{"exp_avg", false}, {"exp_avg_sq", true, nullptr, true}}}},
    {.kind = OptimizerKind::kLamb,
     .optimizer = SHARDREC_OPTIMIZER_LAMB,
     .name = "lamb",
     .of_tables = true,
     .of_layers = true,
     .decouple = true,
     .sums = 2,
     .states = {{{"exp_avg", false, "mean"}, {"exp_avg_sq", false, "square", true}}}},
    {.kind = OptimizerKind::kPartialRowwiseLamb,
     .optimizer = SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_LAMB,
     .name = "partial_rowwise_lamb",
     .of_tables = true,
     .decouple = true,
     .sums = 4,
     .states = {{{"exp_avg", false}, {"exp_avg_sq", true, nullptr, true}}}},
    {.kind = OptimizerKind::kLarsSgd,
     .optimizer = SHARDREC_OPTIMIZER_LARS_SGD,
     .name = "lars_sgd",
     .of_tables = true,
     .l2 = true,
     .momentum = true,
     .sums = 2,
     .states = {{{"momentum_buffer", false}}}},
    {.kind = OptimizerKind::kMomentumSgd,
     .optimizer = SHARDREC_OPTIMIZER_MOMENTUM_SGD,
     .name = "momentum_sgd",
     .of_layers = true,
     .l2 = true,
     .decouple = true,
     .momentum = true,
     .states = {{{"momentum_buffer", false, "momentum"}}}},
}};

static_assert([] {
#define SHARDREC_KIND(Name) OptimizerKind::k##Name,
  constexpr std::array kListed = {SHARDREC_ROW_OPTIMIZERS(SHARDREC_KIND)};
#undef SHARDREC_KIND
  if (kListed.size() != kRowOptimizerKinds) return false;
  for (size_t o = 0; o < kListed.size(); ++o) {
    if (kListed[o] != static_cast<OptimizerKind>(o)) return false;
  }
  for (size_t o = 0; o < kOptimizers.size(); ++o) {
    const OptimizerFacts& facts = kOptimizers[o];
    if (facts.kind != static_cast<OptimizerKind>(o)) return false;
    if (facts.of_tables != (o < kRowOptimizerKinds)) return false;
    for (size_t s = 0; s < facts.state_count(); ++s) {
      if (facts.of_layers != (facts.states[s].layer_name != nullptr)) return false;
    }
  }
  return true;
}());

constexpr const OptimizerFacts& facts_of(OptimizerKind kind) noexcept {
  return kOptimizers[static_cast<size_t>(kind)];
}
// Null: there is none of this number.
constexpr const OptimizerFacts* find_facts(shardrec_optimizer optimizer) noexcept {
  for (const OptimizerFacts& facts : kOptimizers) {
    if (facts.optimizer == optimizer) return &facts;
  }
  return nullptr;
}

// What an optimizer keeps and sums.
struct StateNeeds {
  int matrices = 0;    // floats per element
  int row_values = 0;  // floats per row and range of sums
  int sums = 0;        // per row and range, in the order of OptimizerFacts::sums
};
constexpr StateNeeds state_needs(OptimizerKind kind) noexcept {
  const OptimizerFacts& facts = facts_of(kind);
  StateNeeds needs{.sums = facts.sums};
  for (size_t s = 0; s < facts.state_count(); ++s) {
    ++(facts.states[s].by_row ? needs.row_values : needs.matrices);
  }
  return needs;
}

// Is there a formula of rows above for the pair?
constexpr bool accepts(OptimizerKind kind, WeightDecay decay) noexcept {
  const OptimizerFacts& facts = facts_of(kind);
  if (!facts.of_tables) return false;
  return decay == WeightDecay::kNone || (decay == WeightDecay::kL2 ? facts.l2 : facts.decouple);
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
