// The dense half as two stacks of layers, an interaction and their data-parallel gradients.
#include "train/dense_net.h"

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
    : is_on_device_(device >= 0),
      dense_columns_(dense_columns),
      features_(features),
      dim_(options.dim),
      bottom_(make_stack(options, device, 0, dense_columns, options.bottom, dim_)),
      interaction_(features, dim_, interaction_options(options, device)),
      interaction_columns_(interaction_.outputs()),
      top_(make_stack(options, device, 1, interaction_columns_, options.top, 1)),
      ddp_(comm, DdpOptions().average(false).reduction(options.ddp_reduction)),
      bottom_out_(device),
      crossed_(device),
      bottom_gradient_(device),
      crossed_gradient_(device),
      embedding_gradient_(device),
      logits_(device),
      probabilities_(device),
      logit_gradient_(device),
      shared_gradient_(device) {
  if (is_on_device_) stop_set_.emplace(comm, DdpOptions().average(false));
  stop_set().add("stop", Vector(&stop_parameter_, 1), Vector(&stop_, 1));
  ddp_.add("bottom", bottom_);
  ddp_.add("top", top_);
  ddp_.commit();
  if (stop_set_) stop_set_->commit();
  if (!is_on_device_ || comm.size() == 1) return;
  share_layer_.emplace(1, interaction_options(options, device));
  share_layer_->add_linear(1, SHARDREC_ACTIVATION_NONE);
  set(share_layer_->parameter(0).value, {share_});
  set(share_layer_->parameter(1).value, {0});
}

std::optional<double> DenseNet::forward(int64_t size, std::span<const float> dense,
                                        const Matrix& embeddings, std::span<const float> labels,
                                        bool wants_loss) {
  size_ = size;
  const Matrix bottom_out = bottom_out_.matrix(size, dim_);
  const Matrix crossed = crossed_.matrix(size, interaction_columns_);
  bottom_.forward({dense.data(), size, dense_columns_}, bottom_out);
  interaction_.forward(bottom_out, embeddings, crossed);
  top_.forward(crossed, logits_.matrix(size, 1));

  const Vector logits = logits_.vector(size), probabilities = probabilities_.vector(size),
               gradient = logit_gradient_.vector(size);
  const Vector own_labels(labels.first(static_cast<size_t>(size)));
  if (is_on_device_ && !wants_loss) {
    enqueue_bce_with_logits(top_, logits, own_labels, probabilities, gradient);
    return std::nullopt;
  }
  const double mean = bce_with_logits(top_, logits, own_labels, probabilities, gradient);
  return mean * static_cast<double>(size);
}

Matrix DenseNet::shared_logit_gradient(int64_t global) {
  const auto share = static_cast<float>(static_cast<double>(size_) / static_cast<double>(global));
  const Matrix gradient = logit_gradient_.matrix(size_, 1);
  if (share == 1) return gradient;
  if (!share_layer_) {
    auto* const floats = static_cast<float*>(gradient.get()->data);
    for (int64_t i = 0; i < size_; ++i) floats[i] *= share;
    return gradient;
  }
  if (share_ != share) {
    set(share_layer_->parameter(0).value, {share});
    share_ = share;
  }
  const Matrix shared = shared_gradient_.matrix(size_, 1);
  share_layer_->forward(gradient, shared);
  return shared;
}

void DenseNet::backward_top(int64_t global) {
  ddp_.begin();
  if (stop_set_) stop_set_->begin();
  const Matrix crossed = crossed_gradient_.matrix(size_, interaction_columns_);
  top_.backward(shared_logit_gradient(global), crossed);
  interaction_.backward(crossed, bottom_gradient_.matrix(size_, dim_), embedding_gradient());
}

void DenseNet::backward_bottom(bool stop) {
  stop_ = stop ? 1.0F : 0.0F;
  stop_set().mark_ready(0);
  if (stop_set_) stop_set_->end();
  bottom_.backward(bottom_gradient_.matrix(size_, dim_));
  ddp_.end();
}

bool DenseNet::wait() {
  ddp_.wait();
  if (stop_set_) stop_set_->wait();
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
