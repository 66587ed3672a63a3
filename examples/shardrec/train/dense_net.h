// The dense half of a DLRM on one rank: bottom stack, dot interaction, top stack, loss.
// Data-parallel: gradients are those of the mean loss over the global batch, summed over the ranks.
//
// Biases start at 0, the bottom stack ends without an activation: its vector meets those of the
// tables in dot products.
//
// On a device, the vectors between the layers and the loss are there, and calls do not wait for it but for a loss that is
// asked for, and, of several ranks, in wait().
//
// One step: forward, backward_top, backward_bottom, from which on gradients travel, wait (collective),
// step. Buffers grow to the largest batch seen.
#pragma once

#include <cstdint>
#include <optional>
#include <shardrec/shardrec.hpp>
#include <span>
#include <string>

#include "data/floats.h"
#include "train/train_options.h"

namespace shardrec::cli {

class DenseNet {
 public:
  // device: as SHARDREC_OPTION_DEVICE has it.
  DenseNet(Comm& comm, const TrainOptions& options, int64_t device, int64_t dense_columns,
           int64_t features);

  // `embeddings`: [size, features * dim], on the device or here. What is passed must stay until backward. Returns the
  // summed loss of this rank's samples in nats, on a device only where it is wanted: the host waits for it.
  std::optional<double> forward(int64_t size, std::span<const float> dense,
                                const Matrix& embeddings, std::span<const float> labels,
                                bool wants_loss);
  // Of the last forward, on the device or here.
  [[nodiscard]] Vector probabilities() { return probabilities_.vector(size_); }

  // The backward of the mean loss over a global batch of `global` samples, down to the interaction:
  // afterwards embedding_gradient() is there, [size, features * dim], and stays until the next one.
  void backward_top(int64_t global);
  [[nodiscard]] Matrix embedding_gradient() {
    return embedding_gradient_.matrix(size_, features_ * dim_);
  }
  // The rest of it. stop: this rank asks all of them to end.
  void backward_bottom(bool stop);
  // Until the gradients are summed over the ranks. Returns whether any rank asked to end: what all
  // say travels with the gradients.
  [[nodiscard]] bool wait();
  void step();

  void add_to(Checkpoint& checkpoint);
  // The parameters that an earlier release has saved beside the tables; their optimizer begins anew.
  void load_format_1(const std::string& directory);

 private:
  Ddp& stop_set() { return stop_set_ ? *stop_set_ : ddp_; }
  // The gradient of the mean over this rank's samples becomes that of its share of the global batch.
  Matrix shared_logit_gradient(int64_t global);

  bool is_on_device_;
  int64_t dense_columns_;
  int64_t features_;
  int64_t dim_;
  int64_t size_ = 0;
  Mlp bottom_;
  Interaction interaction_;
  int64_t interaction_columns_;
  Mlp top_;
  float stop_parameter_ = 0;  // DDP sums gradients of parameters: that of this one is
  float stop_ = 0;            // how many ranks ask to end
  Ddp ddp_;
  std::optional<Ddp> stop_set_;  // of stop_parameter_, where ddp_ is on a device
  Floats bottom_out_, crossed_;
  Floats bottom_gradient_, crossed_gradient_, embedding_gradient_;
  Floats logits_, probabilities_, logit_gradient_;
  // On a device and with several ranks: a layer of one weight, this rank's share, which multiplies gradients there.
  std::optional<Mlp> share_layer_;
  float share_ = 1;  // that weight
  Floats shared_gradient_;
};

}  // namespace shardrec::cli
