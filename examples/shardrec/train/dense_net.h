// The dense half of a model on one rank: bottom stack, how its vector and those of the tables meet, top stack, loss.
// Data-parallel: gradients are those of the mean loss over the global batch, summed over the ranks. With --dense fsdp each
// rank keeps a part of every layer, which is whole while it is computed; the numbers are the same.
//
// They meet in a DLRM's dot products (Naumov et al. 2019), or, with --arch dcn, side by side, in the cross layers that the
// top stack then begins with (DCN-v2, Wang et al. 2021, as in TorchRec's DLRM_DCN): the matrix of the tables' vectors has
// room for that of the bottom stack, and nothing is copied. The bottom stack ends without an activation.
//
// On a device, the vectors between the layers and the loss are there, and calls do not wait for it but for a loss that is
// asked for, and, of several ranks, in wait(). Sharded layers are whole there, and their shards in the host's memory: those
// calls wait for their gradients.
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
  // device: as SHARDREC_OPTION_DEVICE has it. mesh: of comm, or null.
  DenseNet(Comm& comm, Mesh* mesh, const TrainOptions& options, int64_t device,
           int64_t dense_columns, int64_t features);

  // Columns of the matrix that forward takes.
  [[nodiscard]] int64_t vector_columns() const { return (crosses_ ? dim_ : 0) + features_ * dim_; }
  // The part of that matrix that is the tables': [size, features * dim].
  [[nodiscard]] Matrix embeddings_in(const Matrix& vectors) const {
    return columns(vectors, crosses_ ? dim_ : 0, features_ * dim_);
  }
  // `vectors`: [size, vector_columns()], on the device or here, with the tables' in their place. What is passed must stay
  // until backward. Returns the summed loss of this rank's samples in nats, on a device only where it is wanted: the
  // host waits for it.
  std::optional<double> forward(int64_t size, std::span<const float> dense, const Matrix& vectors,
                                std::span<const float> labels, bool wants_loss);
  // Of the last forward, on the device or here.
  [[nodiscard]] Vector probabilities() { return probabilities_.vector(size_); }

  // The backward of the mean loss over a global batch of `global` samples, down to where the vectors meet:
  // afterwards embedding_gradient() is there, [size, features * dim], and stays until the next one.
  void backward_top(int64_t global);
  [[nodiscard]] Matrix embedding_gradient() {
    return embeddings_in(vector_gradient_.matrix(size_, vector_columns()));
  }
  // The rest of it. stop: this rank asks all of them to end.
  void backward_bottom(bool stop);
  // Until the gradients are summed over the ranks. Returns whether any rank asked to end: what all
  // say travels with the gradients.
  [[nodiscard]] bool wait();
  void step();
  // false, for evaluation: nothing is dropped, and no backward follows a forward.
  void set_training(bool training);

  // What this rank keeps of the layers and makes for them, for people; empty unless they are sharded.
  [[nodiscard]] std::string sharded_text();

  // Stacks "bottom" and "top"; with --arch dcn "bottom" and "over", for no scorer takes them for a DLRM's.
  void add_to(Checkpoint& checkpoint);
  // The parameters that an earlier release has saved beside the tables; their optimizer begins anew. Not of sharded ones.
  void load_format_1(const std::string& directory);

 private:
  Ddp& stop_set() { return stop_set_ ? *stop_set_ : ddp_; }
  // Of the vector of the bottom stack: a part of the tables' matrix, or one of its own.
  Matrix bottom_gradient();
  // The gradient of the mean over this rank's samples becomes that of its share of the global batch.
  Matrix shared_logit_gradient(int64_t global);

  bool is_on_device_;
  bool crosses_;  // --arch dcn
  int64_t dense_columns_;
  int64_t features_;
  int64_t dim_;
  int64_t size_ = 0;
  Mlp bottom_;
  std::optional<Interaction> interaction_;  // unless crosses_
  int64_t top_columns_;                     // inputs of the top stack
  Mlp top_;
  float stop_parameter_ = 0;  // DDP sums gradients of parameters: that of this one is
  float stop_ = 0;            // how many ranks ask to end
  Ddp ddp_;
  std::optional<Fsdp> fsdp_;  // the layers', of --dense fsdp: ddp_ has no more than stop_parameter_
  bool training_ = true;
  std::optional<Ddp> stop_set_;  // of stop_parameter_, where ddp_ is on a device
  Floats bottom_out_, crossed_;  // without crosses_, and likewise:
  Floats bottom_gradient_, crossed_gradient_;
  Floats vector_gradient_;  // as the vectors of forward
  Floats logits_, probabilities_, logit_gradient_;
  // On a device and with several ranks: a layer of one weight, this rank's share, which multiplies gradients there.
  std::optional<Mlp> share_layer_;
  float share_ = 1;  // that weight
  Floats shared_gradient_;
};

}  // namespace shardrec::cli
