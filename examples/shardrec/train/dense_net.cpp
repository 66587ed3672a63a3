// The dense half as two stacks of layers, what is between them and their data-parallel gradients.
#include "train/dense_net.h"

#include <nlohmann/json.hpp>
#include <string>

#include "command/numbers.h"
#include "train/dense_stack.h"

namespace shardrec::cli {
namespace {

MlpOptions interaction_options(const TrainOptions& train, int64_t device) {
  MlpOptions options;
  options.device(device).device_wait(train.device_wait);
  if (train.threads > 0) options.threads(train.threads);
  return options;
}

bool crosses(const TrainOptions& options) { return options.arch == "dcn"; }

std::optional<Interaction> make_interaction(const TrainOptions& options, int64_t device,
                                            int64_t features) {
  if (crosses(options)) return std::nullopt;
  return Interaction(features, options.dim, interaction_options(options, device));
}

// Of the set that has the layers of both stacks; optimizers are per element, or, as LAMB, per parameter.
// On a device whole layers are there, and shards in the host's memory.
std::optional<Fsdp> shard(Comm& comm, Mesh* mesh, const TrainOptions& options, int64_t device,
                          Mlp& bottom, Mlp& top) {
  if (options.dense != "fsdp") return std::nullopt;
  FsdpOptions sharding;
  sharding.strategy(options.fsdp_strategy).average(false);
  sharding.device(device).offload(device >= 0).device_wait(options.device_wait);
  // A step whose loss scale was too large is taken by no rank.
  if (options.precision == "float16") sharding.non_finite("skip");
  if (options.threads > 0) sharding.threads(options.threads);
  Fsdp set =
      options.fsdp_strategy == "hybrid_shard" ? Fsdp(comm, *mesh, sharding) : Fsdp(comm, sharding);
  set.add("bottom", bottom);
  set.add("top", top);
  set.set_optimizer(OptimizerOptions()
                        .optimizer(options.dense_optimizer)
                        .learning_rate(options.dense_learning_rate));
  set.commit();
  return set;
}

}  // namespace

DenseNet::DenseNet(Comm& comm, Mesh* mesh, const TrainOptions& options, int64_t device,
                   int64_t dense_columns, int64_t features)
    : is_on_device_(device >= 0),
      crosses_(crosses(options)),
      dense_columns_(dense_columns),
      features_(features),
      dim_(options.dim),
      bottom_(make_stack(
          options, comm.rank(), device,
          {.number = 0, .inputs = dense_columns, .hidden = options.bottom, .outputs = dim_})),
      interaction_(make_interaction(options, device, features)),
      top_columns_(interaction_ ? interaction_->outputs() : vector_columns()),
      top_(make_stack(options, comm.rank(), device,
                      {.number = 1,
                       .inputs = top_columns_,
                       .cross_layers = crosses_ ? options.cross_layers : 0,
                       .hidden = options.top,
                       .outputs = 1})),
      ddp_(comm, DdpOptions().average(false).reduction(options.ddp_reduction)),
      bottom_out_(device),
      crossed_(device),
      bottom_gradient_(device),
      crossed_gradient_(device),
      vector_gradient_(device),
      logits_(device),
      probabilities_(device),
      logit_gradient_(device),
      shared_gradient_(device) {
  if (is_on_device_ && options.dense != "fsdp")
    stop_set_.emplace(comm, DdpOptions().average(false));
  stop_set().add("stop", Vector(&stop_parameter_, 1), Vector(&stop_, 1));
  fsdp_ = shard(comm, mesh, options, device, bottom_, top_);
  if (!fsdp_) {
    ddp_.add("bottom", bottom_);
    ddp_.add("top", top_);
  }
  ddp_.commit();
  if (stop_set_) stop_set_->commit();
  if (!is_on_device_ || comm.size() == 1) return;
  share_layer_.emplace(1, interaction_options(options, device));
  share_layer_->add_linear(1, SHARDREC_ACTIVATION_NONE);
  set_parameter(share_layer_->parameter(0).value, {share_});
  set_parameter(share_layer_->parameter(1).value, {0});
}

std::optional<double> DenseNet::forward(int64_t size, std::span<const float> dense,
                                        const Matrix& vectors, std::span<const float> labels,
                                        bool wants_loss) {
  size_ = size;
  const Matrix own_dense(dense.data(), size, dense_columns_);
  const Matrix own_logits = logits_.matrix(size, 1);
  if (fsdp_) fsdp_->begin(training_);
  if (crosses_) {
    bottom_.forward(own_dense, columns(vectors, 0, dim_));
    top_.forward(vectors, own_logits);
  } else {
    const Matrix bottom_out = bottom_out_.matrix(size, dim_);
    const Matrix crossed = crossed_.matrix(size, top_columns_);
    bottom_.forward(own_dense, bottom_out);
    interaction_->forward(bottom_out, vectors, crossed);
    top_.forward(crossed, own_logits);
  }
  if (fsdp_ && !training_) {
    fsdp_->end();
    fsdp_->wait();
  }

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
    set_parameter(share_layer_->parameter(0).value, {share});
    share_ = share;
  }
  const Matrix shared = shared_gradient_.matrix(size_, 1);
  share_layer_->forward(gradient, shared);
  return shared;
}

void DenseNet::backward_top(int64_t global) {
  ddp_.begin();
  if (stop_set_) stop_set_->begin();
  const Matrix vectors = vector_gradient_.matrix(size_, vector_columns());
  const Matrix logits = shared_logit_gradient(global);
  if (crosses_) return top_.backward(logits, vectors);
  const Matrix crossed = crossed_gradient_.matrix(size_, top_columns_);
  top_.backward(logits, crossed);
  interaction_->backward(crossed, bottom_gradient(), vectors);
}

Matrix DenseNet::bottom_gradient() {
  if (crosses_) return columns(vector_gradient_.matrix(size_, vector_columns()), 0, dim_);
  return bottom_gradient_.matrix(size_, dim_);
}

void DenseNet::backward_bottom(bool stop) {
  stop_ = stop ? 1.0F : 0.0F;
  stop_set().mark_ready(0);
  if (stop_set_) stop_set_->end();
  bottom_.backward(bottom_gradient());
  ddp_.end();
  if (fsdp_) fsdp_->end();
}

bool DenseNet::wait() {
  ddp_.wait();
  if (stop_set_) stop_set_->wait();
  if (fsdp_) fsdp_->wait();
  return stop_ > 0;
}

void DenseNet::step() {
  if (fsdp_) {
    fsdp_->step();
    return fsdp_->zero_gradients();
  }
  bottom_.step();
  top_.step();
}

std::string DenseNet::sharded_text() {
  if (!fsdp_) return {};
  const auto statistics = nlohmann::json::parse(fsdp_->statistics_json());
  const auto number = [&](const char* name) { return statistics.at(name).get<int64_t>(); };
  const int64_t ranks = number("sharding_ranks");
  return "layers: " + std::to_string(number("units")) + " units, " +
         (ranks == 1 ? "whole on each rank"
                     : "in shards over " + std::to_string(ranks) + " ranks") +
         "; a rank keeps " +
         bytes_text(number("value_bytes") + number("gradient_bytes") + number("state_bytes")) +
         " of them and " +
         bytes_text(number("full_parameter_bytes") + number("full_gradient_bytes")) +
         " of buffers for whole ones";
}

void DenseNet::set_training(bool training) {
  training_ = training;
  bottom_.set_training(training);
  top_.set_training(training);
}

void DenseNet::add_to(Checkpoint& checkpoint) {
  checkpoint.add("bottom", bottom_);
  checkpoint.add(crosses_ ? "over" : "top", top_);
}

void DenseNet::load_format_1(const std::string& directory) {
  load_parameters(directory + "/dense_bottom.safetensors", bottom_);
  load_parameters(directory + "/dense_top.safetensors", top_);
}

}  // namespace shardrec::cli
