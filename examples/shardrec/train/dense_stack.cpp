// Hidden layers with what is behind them, cross layers, and the seeds of it all.
#include "train/dense_stack.h"

#include "data/hash_number.h"
#include "data/safetensors.h"

namespace shardrec::cli {
namespace {

// Seeds of dropout on other ranks are behind those of stacks.
constexpr uint64_t kRankSeeds = uint64_t{1} << 32;

// Stacks draw from different seeds, else equal layer numbers would start equal.
int64_t stack_seed(const TrainOptions& train, uint64_t stack, int rank) {
  uint64_t seed = train.seed;
  if (train.dropout > 0 && rank > 0) {
    seed = hash_number(seed, kRankSeeds + static_cast<uint64_t>(rank));
  }
  return static_cast<int64_t>(hash_number(seed, stack) >> 1);
}

}  // namespace

void set_parameter(const Tensor& value, const std::vector<float>& floats) {
  shardrec_tensor given = *value.get();
  given.device_type = SHARDREC_DEVICE_CPU;
  given.device_id = 0;
  given.data = const_cast<float*>(floats.data());  // only read
  copy(value, Tensor(given));
}

Mlp make_stack(const TrainOptions& train, int rank, int64_t device, const StackShape& shape) {
  MlpOptions options;
  options.optimizer(train.dense_optimizer)
      .learning_rate(train.dense_learning_rate)
      .seed(stack_seed(train, shape.number, rank))
      .device(device)
      .device_wait(train.device_wait)
      .precision(train.precision);
  if (train.threads > 0) options.threads(train.threads);
  Mlp stack(shape.inputs, options);
  std::vector<int32_t> biases;  // the last parameters of their layers
  const auto has_bias = [&] { biases.push_back(stack.info().parameters - 1); };
  for (int64_t i = 0; i < shape.cross_layers; ++i) {
    stack.add_cross(train.cross_rank);
    has_bias();
  }
  for (size_t i = 0; i < shape.hidden.size(); ++i) {
    stack.add_linear(shape.hidden[i]);
    has_bias();
    // Not in front of the last layer, whose outputs would begin as large as trained ones.
    if (train.layer_norm && i + 1 < shape.hidden.size()) stack.add_layer_norm();
    if (train.dropout > 0) stack.add_dropout(train.dropout);
  }
  stack.add_linear(shape.outputs, SHARDREC_ACTIVATION_NONE);
  has_bias();
  for (const int32_t bias : biases) {
    const Tensor value = stack.parameter(bias).value;
    set_parameter(value, std::vector<float>(static_cast<size_t>(value.elements())));
  }
  return stack;
}

void load_parameters(const std::string& path, Mlp& stack) {
  const Safetensors file(path);
  const int32_t layers = stack.info().layers;
  for (int32_t layer = 0; layer < layers; ++layer) {
    for (int32_t bias = 0; bias < 2; ++bias) {
      const std::string name = "layer." + std::to_string(layer) + (bias == 0 ? ".weight" : ".bias");
      const Tensor value = stack.parameter(2 * layer + bias).value;
      set_parameter(value, file.floats(name, value.elements()));
    }
  }
}

}  // namespace shardrec::cli
