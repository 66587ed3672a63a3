// Stacks of layers of all kinds, for tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dense/layers/mlp.h"

namespace shardrec::dense::test {

inline LayerShape linear(int64_t outputs, bool relu = true) {
  return {.activation = relu ? SHARDREC_ACTIVATION_RELU : SHARDREC_ACTIVATION_NONE,
          .outputs = outputs};
}
inline LayerShape cross(int64_t rank = 0) { return {.kind = SHARDREC_LAYER_CROSS, .rank = rank}; }
inline LayerShape layer_norm(double epsilon = 1e-5) {
  return {.kind = SHARDREC_LAYER_LAYER_NORM, .epsilon = epsilon};
}
inline LayerShape dropout(double rate = 0.4) {
  return {.kind = SHARDREC_LAYER_DROPOUT, .rate = rate};
}

struct StackOf {
  std::string name;
  int64_t inputs;
  std::vector<LayerShape> layers;
};

// Each kind alone, as the first and as the last layer, runs of cross layers of both ranks, and all
// kinds mixed. Widths are no multiples of vectors.
inline std::vector<StackOf> stacks() {
  return {{"cross", 7, {cross()}},
          {"low cross", 19, {cross(3)}},
          {"run of cross", 13, {cross(), cross(), cross()}},
          {"run of both ranks", 21, {cross(4), cross(), cross(30)}},
          {"runs apart", 9, {cross(), cross(2), linear(11), cross(), cross(5), linear(2, false)}},
          {"layer norm", 37, {layer_norm()}},
          {"layer norm of a column", 1, {layer_norm()}},
          {"layer norm inside", 5, {linear(40, false), layer_norm(0.01), linear(3)}},
          {"layer norm of many columns", 300, {layer_norm(), linear(2, false)}},
          {"dropout", 10, {dropout()}},
          {"dropout inside", 6, {linear(33), dropout(0.25), linear(4, false), dropout(0.5)}},
          {"all",
           17,
           {layer_norm(), cross(), cross(6), dropout(0.3), linear(23), layer_norm(0.1),
            dropout(0.1), cross(2), linear(5), cross()}}};
}

inline std::unique_ptr<Mlp> make(const StackOf& of, const MlpOptions& options = {.seed = 7}) {
  auto mlp = std::make_unique<Mlp>(of.inputs, options);
  for (const LayerShape& layer : of.layers) mlp->add(layer);
  // Layer norms begin as the identity: parameters of all kinds are to matter.
  float* values = mlp->parameters().values();
  for (int64_t i = 0; i < mlp->parameters().size(); ++i) {
    values[i] += 0.01F * static_cast<float>(i % 11 - 5);
  }
  return mlp;
}

}  // namespace shardrec::dense::test
