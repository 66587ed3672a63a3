// The dense half as two stacks of layers, an interaction and their data-parallel gradients.
#include "train/dense_net.h"

#include <algorithm>
#include <string>
#include <vector>

#include "data/hash_number.h"
#include "data/safetensors.h"

namespace shardrec::cli {
namespace {

// The two stacks draw from different seeds, else equal layer numbers would start equal.
int64_t stack_seed(uint64_t seed, uint64_t stack) {
  return static_cast<int64_t>(hash_number(seed, stack) >> 1);
}

MlpOptions interaction_options(const TrainOptions& train, int64_t device) {
  MlpOptions options;
  options.device(device).device_wait(train.device_wait);
  if (train.threads > 0) options.threads(train.threads);
  return options;
}

// Of a parameter, wherever it is.
void set(const Tensor& value, const std::vector<float>& floats) {
  shardrec_tensor given = *value.get();
  given.device_type = SHARDREC_DEVICE_CPU;
  given.device_id = 0;
  given.data = const_cast<float*>(floats.data());  // only read
  copy(value, Tensor(given));
}

// Hidden layers, then one without an activation.
Mlp make_stack(const TrainOptions& train, int64_t device, uint64_t number, int64_t inputs,
               const std::vector<int64_t>& hidden, int64_t outputs) {
  MlpOptions options;
  options.optimizer(train.dense_optimizer)
      .learning_rate(train.dense_learning_rate)
      .seed(stack_seed(train.seed, number))
      .device(device)
      .device_wait(train.device_wait);
  if (train.threads > 0) options.threads(train.threads);
  Mlp stack(inputs, options);
  for (const int64_t width : hidden) stack.add_linear(width);
  stack.add_linear(outputs, SHARDREC_ACTIVATION_NONE);
  const int32_t parameters = stack.info().parameters;
  for (int32_t bias = 1; bias < parameters; bias += 2) {
    const Tensor value = stack.parameter(bias).value;
    set(value, std::vector<float>(static_cast<size_t>(value.elements())));
  }
  return stack;
}

// The parameters that an earlier release has saved of a stack.
void load_parameters(const std::string& path, Mlp& stack) {
  const Safetensors file(path);
  const int32_t layers = stack.info().layers;
  for (int32_t layer = 0; layer < layers; ++layer) {
    for (int32_t bias = 0; bias < 2; ++bias) {
      const std::string name = "layer." + std::to_string(layer) + (bias == 0 ? ".weight" : ".bias");
      const Tensor value = stack.parameter(2 * layer + bias).value;
      set(value, file.floats(name, value.elements()));
    }
  }
}

}  // namespace

DenseNet::DenseNet(Comm& comm, const TrainOptions& options, int64_t device, int64_t dense_columns,
                   int64_t features)
    : dense_columns_(dense_columns),
      features_(features),
      dim_(options.dim),
      bottom_(make_stack(options, device, 0, dense_columns, options.bottom, dim_)),
      interaction_(features, dim_, interaction_options(options, device)),
      interaction_columns_(interaction_.outputs()),
      top_(make_stack(options, device, 1, interaction_columns_, options.top, 1)),
      ddp_(comm, DdpOptions().average(false)),
      bottom_out_(device),
      crossed_(device),
      bottom_gradient_(device),
      crossed_gradient_(device),
      embedding_gradient_(device) {
  ddp_.add("stop", Vector(&stop_parameter_, 1), Vector(&stop_, 1));
  ddp_.add("bottom", bottom_);
  ddp_.add("top", top_);
  ddp_.commit();
}

double DenseNet::forward(int64_t size, std::span<const float> dense, const Matrix& embeddings,
                         std::span<const float> labels) {
  size_ = size;
  const auto samples = static_cast<size_t>(size);
  for (std::vector<float>* floats : {&logits_, &probabilities_, &logit_gradient_}) {
    floats->resize(std::max(floats->size(), samples));
  }
  const Matrix bottom_out = bottom_out_.matrix(size, dim_);
  const Matrix crossed = crossed_.matrix(size, interaction_columns_);
  bottom_.forward({dense.data(), size, dense_columns_}, bottom_out);
  interaction_.forward(bottom_out, embeddings, crossed);
  top_.forward(crossed, {logits_.data(), size, 1});

  const double mean_loss =
      bce_with_logits({logits_.data(), samples}, labels.first(samples),
                      {probabilities_.data(), samples}, {logit_gradient_.data(), samples});
  return mean_loss * static_cast<double>(size);
}

void DenseNet::backward_top(int64_t global) {
  ddp_.begin();
  // The loss gave the gradient of the mean over this rank's samples.
  const auto share = static_cast<float>(static_cast<double>(size_) / static_cast<double>(global));
  for (int64_t i = 0; i < size_; ++i) logit_gradient_[static_cast<size_t>(i)] *= share;

  const Matrix crossed = crossed_gradient_.matrix(size_, interaction_columns_);
  top_.backward({logit_gradient_.data(), size_, 1}, crossed);
  interaction_.backward(crossed, bottom_gradient_.matrix(size_, dim_), embedding_gradient());
}

void DenseNet::backward_bottom(bool stop) {
  stop_ = stop ? 1.0F : 0.0F;
  ddp_.mark_ready(0);
  bottom_.backward(bottom_gradient_.matrix(size_, dim_));
  ddp_.end();
}

bool DenseNet::wait() {
  ddp_.wait();
  return stop_ > 0;
}

void DenseNet::step() {
  bottom_.step();
  top_.step();
}

void DenseNet::add_to(Checkpoint& checkpoint) {
  checkpoint.add("bottom", bottom_);
  checkpoint.add("top", top_);
}

void DenseNet::load_format_1(const std::string& directory) {
  load_parameters(directory + "/dense_bottom.safetensors", bottom_);
  load_parameters(directory + "/dense_top.safetensors", top_);
}

}  // namespace shardrec::cli
