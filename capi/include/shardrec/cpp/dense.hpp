// Part of shardrec.hpp: data-parallel parameters, layers, loss, metrics.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDREC_CPP_DENSE_HPP
#define SHARDREC_CPP_DENSE_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "shardrec/cpp/comm.hpp"
#include "shardrec/cpp/options.hpp"
#include "shardrec/cpp/tensor.hpp"
#include "shardrec/ddp.h"
#include "shardrec/layers.h"
#include "shardrec/metrics.h"
#include "shardrec/native.h"

namespace shardrec {

class Mlp : public detail::Handle<shardrec_mlp, shardrec_mlp_destroy> {
 public:
  // Views of the stack's own memory, as long as it lives and no layer is added.
  struct Parameter {
    Tensor value;
    Tensor gradient;
  };

  explicit Mlp(int64_t inputs, const Options &options = {}) {
    check(shardrec_mlp_create(inputs, options.get(), out()));
  }
  using Handle::Handle;

  Mlp &add(shardrec_layer layer) {
    layer.struct_size = sizeof layer;
    check(shardrec_mlp_add(get(), &layer));
    return *this;
  }
  Mlp &add_linear(int64_t outputs, shardrec_activation activation = SHARDREC_ACTIVATION_RELU) {
    shardrec_layer layer = of_kind(SHARDREC_LAYER_LINEAR);
    layer.outputs = outputs;
    layer.activation = activation;
    return add(layer);
  }
  // rank 0: a whole matrix.
  Mlp &add_cross(int64_t rank = 0) {
    shardrec_layer layer = of_kind(SHARDREC_LAYER_CROSS);
    layer.rank = rank;
    return add(layer);
  }
  Mlp &add_layer_norm(double epsilon = 1e-5) {
    shardrec_layer layer = of_kind(SHARDREC_LAYER_LAYER_NORM);
    layer.epsilon = epsilon;
    return add(layer);
  }
  Mlp &add_dropout(double rate) {
    shardrec_layer layer = of_kind(SHARDREC_LAYER_DROPOUT);
    layer.rate = rate;
    return add(layer);
  }
  shardrec_layers info() const {
    shardrec_layers layers{};
    layers.struct_size = sizeof layers;
    check(shardrec_mlp_info(get(), &layers));
    return layers;
  }
  Parameter parameter(int32_t index) {
    shardrec_tensor value{}, gradient{};
    check(shardrec_mlp_parameter(get(), index, &value, &gradient));
    return {value, gradient};
  }
  // As Parameter.
  Tensor state(int32_t index, int32_t state) const {
    shardrec_tensor view{};
    check(shardrec_mlp_state(get(), index, state, &view));
    return view;
  }
  void forward(const Matrix &input, const Matrix &output) {
    check(shardrec_mlp_forward(get(), input.get(), output.get()));
  }
  void backward(const Matrix &output_gradient, const Matrix &input_gradient = nullptr) {
    check(shardrec_mlp_backward(get(), output_gradient.get(), input_gradient.get()));
  }
  void zero_gradients() { check(shardrec_mlp_zero_gradients(get())); }
  void step() { check(shardrec_mlp_step(get())); }
  void set(shardrec_mlp_setting setting, double value) {
    check(shardrec_mlp_set_f64(get(), setting, value));
  }
  void set_learning_rate(double learning_rate) { set(SHARDREC_MLP_LEARNING_RATE, learning_rate); }
  // false: dropout layers give their input.
  void set_training(bool training) { set(SHARDREC_MLP_TRAINING, training ? 1 : 0); }

 private:
  static shardrec_layer of_kind(shardrec_layer_kind kind) {
    shardrec_layer layer{};
    layer.kind = kind;
    return layer;
  }
};

class Ddp : public detail::Handle<shardrec_ddp, shardrec_ddp_destroy> {
 public:
  explicit Ddp(Comm &comm, const Options &options = {}) {
    check(shardrec_ddp_create(comm.get(), options.get(), out()));
  }
  using Handle::Handle;

  // gradient null: memory of the library. Returns the index.
  int32_t add(std::string_view name, const Tensor &parameter, const Tensor &gradient = nullptr) {
    int32_t index = 0;
    check(shardrec_ddp_add_parameter(get(), detail::c_text(name).c_str(), parameter.get(),
                                     gradient.get(), &index));
    return index;
  }
  // Returns the index of its first parameter.
  int32_t add(std::string_view name, Mlp &mlp) {
    int32_t first = 0;
    check(shardrec_ddp_add_mlp(get(), detail::c_text(name).c_str(), mlp.get(), &first));
    return first;
  }
  void set_flat_gradient(const Tensor &gradients) {
    check(shardrec_ddp_set_flat_gradient(get(), gradients.get()));
  }
  void set_optimizer(const Options &options = {}) {
    check(shardrec_ddp_set_optimizer(get(), options.get()));
  }
  void set_callback(shardrec_ddp_callback callback, void *context) {
    check(shardrec_ddp_set_callback(get(), callback, context));
  }
  void set_hook(shardrec_ddp_hook hook, void *context) {
    check(shardrec_ddp_set_hook(get(), hook, context));
  }
  void commit() { check(shardrec_ddp_commit(get())); }

  Tensor gradient(int32_t index) const {
    shardrec_tensor view{};
    check(shardrec_ddp_gradient(get(), index, &view));
    return view;
  }
  Tensor state(int32_t index, int32_t state) const {
    shardrec_tensor view{};
    check(shardrec_ddp_state(get(), index, state, &view));
    return view;
  }
  int32_t bucket_of(int32_t index) const {
    int32_t bucket = 0;
    check(shardrec_ddp_bucket_of(get(), index, &bucket));
    return bucket;
  }

  void begin(bool sync = true) { check(shardrec_ddp_begin(get(), sync ? 1 : 0)); }
  void mark_ready(int32_t first, int32_t count = 1) {
    check(shardrec_ddp_mark_ready(get(), first, count));
  }
  void mark_unused(int32_t first, int32_t count = 1) {
    check(shardrec_ddp_mark_unused(get(), first, count));
  }
  void end() { check(shardrec_ddp_end(get())); }
  void wait() { check(shardrec_ddp_wait(get())); }
  void all_reduce() { check(shardrec_ddp_all_reduce(get())); }
  void join() { check(shardrec_ddp_join(get())); }
  void zero_gradients() { check(shardrec_ddp_zero_gradients(get())); }
  // Returns the norm of before.
  double clip_gradients(shardrec_clip clip, double bound) {
    double norm = 0;
    check(shardrec_ddp_clip_gradients(get(), clip, bound, &norm));
    return norm;
  }
  void step() { check(shardrec_ddp_step(get())); }
  void set_learning_rate(double learning_rate) {
    check(shardrec_ddp_set_learning_rate(get(), learning_rate));
  }
  void check_equal() { check(shardrec_ddp_check_equal(get())); }
  void broadcast(int32_t root) { check(shardrec_ddp_broadcast(get(), root)); }
  // JSON.
  std::string statistics_json() {
    detail::Text text;
    check(shardrec_ddp_statistics_json(get(), text.out()));
    return text.str();
  }
};

class Interaction : public detail::Handle<shardrec_interaction, shardrec_interaction_destroy> {
 public:
  Interaction(int64_t features, int64_t dim, const Options &options = {}) {
    check(shardrec_interaction_create(features, dim, options.get(), out()));
  }
  using Handle::Handle;

  int64_t outputs() const {
    int64_t outputs = 0;
    check(shardrec_interaction_outputs(get(), &outputs));
    return outputs;
  }
  void forward(const Matrix &dense, const Matrix &embeddings, const Matrix &output) {
    check(shardrec_interaction_forward(get(), dense.get(), embeddings.get(), output.get()));
  }
  void backward(const Matrix &output_gradient, const Matrix &dense_gradient,
                const Matrix &embedding_gradient) {
    check(shardrec_interaction_backward(get(), output_gradient.get(), dense_gradient.get(),
                                        embedding_gradient.get()));
  }
};

// The mean loss in nats.
inline double bce_with_logits(const Vector &logits, const Vector &labels,
                              const Vector &probabilities = nullptr,
                              const Vector &gradient = nullptr) {
  double loss = 0;
  check(shardrec_bce_with_logits(nullptr, logits.get(), labels.get(), probabilities.get(),
                                 gradient.get(), &loss));
  return loss;
}

// The same where the stack is: on a device, for which it waits.
inline double bce_with_logits(Mlp &stack, const Vector &logits, const Vector &labels,
                              const Vector &probabilities = nullptr,
                              const Vector &gradient = nullptr) {
  double loss = 0;
  check(shardrec_bce_with_logits(stack.get(), logits.get(), labels.get(), probabilities.get(),
                                 gradient.get(), &loss));
  return loss;
}

// The same without the loss, for which it need not wait: a label outside 0 .. 1 is told by the next call that has it.
inline void enqueue_bce_with_logits(Mlp &stack, const Vector &logits, const Vector &labels,
                                    const Vector &probabilities, const Vector &gradient = nullptr) {
  check(shardrec_bce_with_logits(stack.get(), logits.get(), labels.get(), probabilities.get(),
                                 gradient.get(), nullptr));
}

class Metrics : public detail::Handle<shardrec_metrics, shardrec_metrics_destroy> {
 public:
  // comm null: this rank alone.
  explicit Metrics(Comm *comm = nullptr) {
    check(shardrec_metrics_create(comm == nullptr ? nullptr : comm->get(), nullptr, out()));
  }
  explicit Metrics(Comm &comm) : Metrics(&comm) {}
  Metrics(Comm &comm, const Options &options) : Metrics(&comm, options) {}
  Metrics(Comm *comm, const Options &options) {
    check(shardrec_metrics_create(comm == nullptr ? nullptr : comm->get(), options.get(), out()));
  }
  using Handle::Handle;

  void update(const Vector &probabilities, const Vector &labels) {
    check(shardrec_metrics_update(get(), probabilities.get(), labels.get()));
  }
  void compute() { check(shardrec_metrics_compute(get())); }
  double metric(shardrec_metric which) const {
    double value = 0;
    check(shardrec_metrics_get(get(), which, &value));
    return value;
  }
  // Empty where the samples do not have it, such as an AUC where all labels are equal.
  std::optional<double> find_metric(shardrec_metric which) const {
    double value = 0;
    if (!found(shardrec_metrics_get(get(), which, &value))) return std::nullopt;
    return value;
  }
  void reset() { check(shardrec_metrics_reset(get())); }
};

}  // namespace shardrec

#endif
