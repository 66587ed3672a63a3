#include "train/dense_net.h"

#include <algorithm>

namespace shardrec::cli {
namespace {

// The two stacks draw from different seeds, else equal layer numbers would start equal.
int64_t stack_seed(uint64_t seed, uint64_t stack) {
  return static_cast<int64_t>(hash_number(seed, stack) >> 1);
}

Options stack_options(const TrainOptions& train, uint64_t stack) {
  Options options(SHARDREC_OPTIONS_MLP);
  options.set(SHARDREC_OPTION_OPTIMIZER, train.dense_optimizer)
      .set(SHARDREC_OPTION_LEARNING_RATE, train.dense_learning_rate)
      .set(SHARDREC_OPTION_SEED, stack_seed(train.seed, stack));
  if (train.threads > 0) options.set(SHARDREC_OPTION_THREADS, int64_t{train.threads});
  return options;
}

std::string stack_path(const std::string& directory, const char* name) {
  return directory + "/dense_" + name + ".safetensors";
}

}  // namespace

DenseNet::DenseNet(shardrec_comm* comm, const TrainOptions& options, int64_t dense_columns,
                   int64_t features)
    : dense_columns_(dense_columns), features_(features), dim_(options.dim) {
  const Options bottom = stack_options(options, 0);
  check(shardrec_mlp_create(dense_columns, bottom.get(), bottom_.out()));
  for (const int64_t outputs : options.bottom) {
    check(shardrec_mlp_add_linear(bottom_.get(), outputs, SHARDREC_ACTIVATION_RELU));
  }
  check(shardrec_mlp_add_linear(bottom_.get(), dim_, SHARDREC_ACTIVATION_NONE));

  Options threads(SHARDREC_OPTIONS_MLP);
  if (options.threads > 0) threads.set(SHARDREC_OPTION_THREADS, int64_t{options.threads});
  check(shardrec_interaction_create(features, dim_, threads.get(), interaction_.out()));
  check(shardrec_interaction_outputs(interaction_.get(), &interaction_columns_));

  const Options top = stack_options(options, 1);
  check(shardrec_mlp_create(interaction_columns_, top.get(), top_.out()));
  for (const int64_t outputs : options.top) {
    check(shardrec_mlp_add_linear(top_.get(), outputs, SHARDREC_ACTIVATION_RELU));
  }
  check(shardrec_mlp_add_linear(top_.get(), 1, SHARDREC_ACTIVATION_NONE));

  Options ddp(SHARDREC_OPTIONS_DDP);
  ddp.set(SHARDREC_OPTION_DDP_AVERAGE, int64_t{0});
  check(shardrec_ddp_create(comm, ddp.get(), ddp_.out()));
  add_parameters("bottom", bottom_.get());
  add_parameters("top", top_.get());
  check(shardrec_ddp_commit(ddp_.get()));
}

void DenseNet::add_parameters(const std::string& name, shardrec_mlp* mlp) {
  int32_t count = 0;
  check(shardrec_mlp_parameter_count(mlp, &count));
  for (int32_t i = 0; i < count; ++i) {
    shardrec_tensor parameter;
    shardrec_tensor gradient;
    check(shardrec_mlp_parameter(mlp, i, &parameter, &gradient));
    const bool is_bias = i % 2 == 1;
    const std::string full = name + "." + std::to_string(i / 2) + (is_bias ? ".bias" : ".weight");
    if (is_bias) std::fill_n(static_cast<float*>(parameter.data), parameter.shape[0], 0.0F);
    check(shardrec_ddp_add(ddp_.get(), full.c_str(), &parameter, &gradient));
  }
}

void DenseNet::resize(int64_t size) {
  size_ = size;
  const auto grow = [&](std::vector<float>& data, int64_t columns) {
    data.resize(std::max(data.size(), static_cast<size_t>(size * columns)));
  };
  grow(bottom_out_, dim_);
  grow(bottom_gradient_, dim_);
  grow(crossed_, interaction_columns_);
  grow(crossed_gradient_, interaction_columns_);
  grow(logits_, 1);
  grow(logit_gradient_, 1);
  grow(probabilities_, 1);
  grow(embedding_gradient_, features_ * dim_);
}

double DenseNet::forward(int64_t size, std::span<const float> dense,
                         std::span<const float> embeddings, std::span<const float> labels) {
  resize(size);
  dense_ = dense;
  embeddings_ = embeddings;
  const shardrec_tensor input = matrix_view(dense.data(), size, dense_columns_);
  const shardrec_tensor bottom_out = matrix_view(bottom_out_.data(), size, dim_);
  check(shardrec_mlp_forward(bottom_.get(), &input, &bottom_out));
  const shardrec_tensor pooled = matrix_view(embeddings.data(), size, features_ * dim_);
  const shardrec_tensor crossed = matrix_view(crossed_.data(), size, interaction_columns_);
  check(shardrec_interaction_forward(interaction_.get(), &bottom_out, &pooled, &crossed));
  const shardrec_tensor logits = matrix_view(logits_.data(), size, 1);
  check(shardrec_mlp_forward(top_.get(), &crossed, &logits));

  const shardrec_tensor label_view = matrix_view(labels.data(), size, 1);
  const shardrec_tensor probabilities = matrix_view(probabilities_.data(), size, 1);
  const shardrec_tensor gradient = matrix_view(logit_gradient_.data(), size, 1);
  double mean_loss = 0;
  check(shardrec_bce_with_logits(&logits, &label_view, &probabilities, &gradient, &mean_loss));
  return mean_loss * static_cast<double>(size);
}

void DenseNet::backward(int64_t global) {
  // The loss gave the gradient of the mean over this rank's samples.
  const auto share = static_cast<float>(static_cast<double>(size_) / static_cast<double>(global));
  for (int64_t i = 0; i < size_; ++i) logit_gradient_[static_cast<size_t>(i)] *= share;

  const shardrec_tensor logit_gradient = matrix_view(logit_gradient_.data(), size_, 1);
  const shardrec_tensor crossed =
      matrix_view(crossed_gradient_.data(), size_, interaction_columns_);
  check(shardrec_mlp_backward(top_.get(), &logit_gradient, &crossed));
  const shardrec_tensor bottom = matrix_view(bottom_gradient_.data(), size_, dim_);
  const shardrec_tensor pooled = matrix_view(embedding_gradient_.data(), size_, features_ * dim_);
  check(shardrec_interaction_backward(interaction_.get(), &crossed, &bottom, &pooled));
  check(shardrec_mlp_backward(bottom_.get(), &bottom, nullptr));
}

void DenseNet::reduce() { check(shardrec_ddp_all_reduce(ddp_.get())); }

void DenseNet::step() {
  check(shardrec_mlp_step(bottom_.get()));
  check(shardrec_mlp_step(top_.get()));
}

void DenseNet::add_to(shardrec_checkpoint* checkpoint) {
  check(shardrec_checkpoint_add_mlp(checkpoint, "bottom", bottom_.get()));
  check(shardrec_checkpoint_add_mlp(checkpoint, "top", top_.get()));
}

void DenseNet::load_format_1(const std::string& directory) {
  check(shardrec_mlp_load(bottom_.get(), stack_path(directory, "bottom").c_str()));
  check(shardrec_mlp_load(top_.get(), stack_path(directory, "top").c_str()));
}

}  // namespace shardrec::cli
