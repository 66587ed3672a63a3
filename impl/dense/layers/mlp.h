// A stack of layers, trained in place (capi's layers.h).
//
// Rows are cut into tiles by the batch size alone, and each tile runs through all layers while it
// is in cache: forward (forward.h), then gradients of activations (backward.h). Gradients of weight
// matrices follow (weight_gradients.h). Bits do not depend on the number of threads. A step of a batch not
// larger than one before allocates nothing.
// On a device, all rows go through each layer at once (on_device.h); calls return when they have enqueued that.
// The parameters live there, and the host has them when it asks.
// Where others keep the parameters (layer_units.h), layers are computed unit by unit (mlp_units.cpp).
// Thread rule: one thread at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/function_ref.h"
#include "core/tensor.h"
#include "core/threads.h"
#include "core/trace.h"
#include "dense/gemm.h"
#include "dense/layers/backward.h"
#include "dense/layers/device_stack.h"
#include "dense/layers/layer.h"
#include "dense/layers/layer_units.h"
#include "dense/layers/weight_gradients.h"
#include "dense/loss_scale.h"
#include "dense/parameters.h"
#include "dense/precision.h"
#include "plan/model/model.h"
#include "shardrec/layers.h"

namespace shardrec::dense {

struct MlpOptions {
  plan::Optimizer optimizer;
  uint64_t seed = 0;
  int threads = 1;
  bool accumulate = false;  // does backward add to the gradients?
  Precision precision = Precision::kFloat32;
  LossScaleOptions loss_scale;  // of FLOAT16
  device::ContextOptions place;
};

// Who wants to know of gradients while backward goes on.
class GradientListener {
 public:
  GradientListener() = default;
  GradientListener(const GradientListener&) = delete;
  GradientListener& operator=(const GradientListener&) = delete;
  virtual ~GradientListener() = default;
  // Throws what backward is to throw before it has changed anything.
  virtual void before_backward() = 0;
  // The gradients of parameters [first, first + count) of the stack are whole; stream: behind what it holds now, null:
  // now.
  virtual void ready(int64_t first, int64_t count, compute::cuda::host::Stream* stream) = 0;
  // Nobody wants to know any more.
  virtual bool expired() const noexcept = 0;
};

// Floats of gradients that are told of as they come, at least.
inline constexpr int64_t kToldElements = int64_t{1} << 18;

class Mlp {
 public:
  // Throws INVALID_ARGUMENT, UNSUPPORTED (optimizer, precision, plug-ins), OUT_OF_MEMORY; on a device DEVICE_ERROR.
  Mlp(int64_t inputs, const MlpOptions& options);

  // Throws INVALID_ARGUMENT, INVALID_STATE after the first forward, OUT_OF_MEMORY; then nothing has
  // changed.
  void add(const LayerShape& shape);
  void add_linear(int64_t outputs, shardrec_activation activation) {
    add({.activation = static_cast<int32_t>(activation), .outputs = outputs});
  }

  int64_t inputs() const noexcept { return inputs_; }
  int64_t outputs() const noexcept;  // inputs() while there is no layer
  std::vector<LayerShape> shapes() const;
  std::span<const Layer> layers() const noexcept { return layers_; }
  bool has_dropout() const noexcept;

  // Units that will have the parameters: from release_parameters() on, which gives back their memory. No layer is added
  // afterwards. Throws INVALID_STATE where there is no parameter, or the stack is in a set that has not expired;
  // UNSUPPORTED for a stack that cannot be computed so; OUT_OF_MEMORY.
  void set_units(std::shared_ptr<LayerUnits> units);
  void release_parameters() noexcept;
  // That have the parameters; null: the stack has.
  LayerUnits* units() const noexcept { return is_sharded_ ? units_.get() : nullptr; }
  // Throws INVALID_STATE where parameters() are not what is trained.
  void require_own_parameters(const char* call) const;

  // In the host's memory. Of a stack on a device, values and states are those of the last fetch(), and of one in
  // FLOAT16 the number of steps too.
  Parameters& parameters() noexcept { return parameters_; }
  const Parameters& parameters() const noexcept { return parameters_; }
  // Of a stack on a device, the host gets values, states and counts that the device has. Throws OUT_OF_MEMORY,
  // DEVICE_ERROR.
  void fetch();
  // The same of the loss scale and the counts alone: of FLOAT16.
  void fetch_loss_scale();
  // The device gets those of the host. Where it fails, the next call that needs them tells.
  void publish() noexcept;

  // The devices that callers' matrices may be on, and where an element of the parameters is, for them. Throw as
  // fetch().
  core::DeviceSet caller_devices() const noexcept;
  float* values(int64_t offset);
  float* gradients(int64_t offset);
  float* state(int state, int64_t offset);
  // Of a stack on a device: `use` may order other operations by those of the stack, whose thread rule it keeps.
  void with_context(core::FunctionRef<void(device::Context&)> use);

  // Does it scale gradients (FLOAT16)? loss_scale(): of the last fetch, a scale of 1 where it does not.
  bool scales() const noexcept { return precision_ == Precision::kFloat16; }
  const LossScaleState& loss_scale() const noexcept { return loss_scale_.state(); }
  // On a device from the next publish() on.
  // A scale that is constant stays.
  void set_loss_scale(const LossScaleState& state) noexcept {
    if (scales() && loss_scale_.steps() > 0) loss_scale_.set_state(state);
  }

  // The row in traces of a stack on a device: what it does there. On the CPU it is in none.
  void set_track(const core::TraceTrack& track);

  // In training, which a stack is in at first, dropout layers drop elements of the next forwards.
  void set_training(bool training) noexcept { training_ = training; }
  // Forwards in training so far: which elements the next one drops. Of stacks with a dropout layer.
  int64_t dropout_forwards() const noexcept { return static_cast<int64_t>(dropout_forwards_); }
  void set_dropout_forwards(int64_t forwards) noexcept {
    dropout_forwards_ = static_cast<uint64_t>(forwards);
  }

  // The input is read again by backward. Throws INVALID_STATE without layers, INVALID_ARGUMENT for
  // shapes; on a device DEVICE_ERROR, and INVALID_ARGUMENT where the caller's stream is none.
  void forward(const device::CallerMatrix& input, const device::CallerMatrix& output);
  void forward(const core::Matrix& input, const core::Matrix& output) {
    forward({input, false}, {output, false});
  }

  // Overwrites all gradients, or adds to them: each gets the bits that it would be overwritten
  // with, added in float32. Where it throws, they are as before. The input's are always
  // overwritten; input_gradient.data null: not wanted. Throws as forward(); where a device fails, gradients
  // are of no use.
  void backward(const device::CallerMatrix& output_gradient,
                const device::CallerMatrix& input_gradient);
  void backward(const core::Matrix& output_gradient, const core::Matrix& input_gradient) {
    backward({output_gradient, false}, {input_gradient, false});
  }

  // Told from the last layer to the first. No layer is added afterwards. Throws INVALID_STATE where
  // there is one that has not expired, or no layer; on a device as fetch().
  void set_listener(std::shared_ptr<GradientListener> listener);

  void zero_gradients();

  // The loss of a stack on a device, which computes it there (device/loss.h).
  void compute_loss(const device::LossVectors& vectors, double* mean);

  // Of a stack that scales gradients it is skipped where one of them is not finite. Throws INVALID_STATE before the
  // first backward.
  void step();

 private:
  // Where units have the parameters of a layer and their gradients, by role.
  struct LayerPlaces {
    std::array<const float*, kRoles> values{};
    std::array<float*, kRoles> gradients{};
  };

  bool keeps_output(size_t layer) const noexcept;
  int64_t tile_rows() const noexcept;
  int64_t tile_count() const noexcept;
  GradientBatch gradient_batch() const noexcept;
  Unscaling unscaling() noexcept;
  DropoutMask mask_of(const Layer& layer) const noexcept;
  // What matrices between layers have the numbers of, and whether that is a type of 16 bits.
  compute::Element element() const noexcept { return element_of(precision_); }
  bool rounds() const noexcept { return element() != compute::Element::kFloat32; }
  // What matrices between layers are kept as.
  compute::Element kept_element() const noexcept;
  KeptMatrices kept_matrices(size_t layer) const noexcept;
  ElementMatrix kept_matrix(const compute::Buffer& buffer, int64_t cols) const noexcept;
  // The memory of layer l's input and output, and of the gradient of its output. last: the caller's, or its rounded copy.
  ElementMatrix input_of(size_t layer) const noexcept;
  ElementMatrix output_of(size_t layer, const ElementMatrix& last) const noexcept;
  ElementMatrix gradient_of(size_t layer, const ElementMatrix& last) const noexcept;
  // Of what its weights multiplied into: of a linear layer the gradient before its activation.
  ElementMatrix product_gradient_of(size_t layer, const ElementMatrix& last) const noexcept;
  // Of the layer's parameter, where it is trained.
  float* gradients_of(size_t layer, Role role) const noexcept;
  // A layer of the stack on the CPU, and on the device.
  LayerValues host_layer(const Layer& layer) const noexcept;
  // In units.
  LayerValues placed_values(const Layer& layer) const noexcept;
  DeviceLayer device_layer(const Layer& layer) const noexcept;
  // Room for what is rounded, and the caller's matrix, or it times a scale, rounded into it.
  void resize_rounded_inputs(int64_t batch);
  ElementMatrix rounded_on_host(const core::Matrix& from, const compute::Buffer& buffer,
                                float scale = 1);
  ElementMatrix rounded_on_device(const core::Matrix& from, const compute::Buffer& buffer,
                                  const shardrec_cuda_loss_scale* scale = nullptr);
  void round_weights_on_host();
  void round_placed_weights(const LayerRange& range);
  // As the layers read it: times the loss scale, and rounded.
  ElementMatrix gradient_on_host(const core::Matrix& output_gradient);
  void round_weights_on_device();
  device::Multiplier multiplier() const noexcept;

  ForwardRowsOf<ElementMatrix> forward_rows(size_t layer,
                                            const ElementMatrix& output) const noexcept;
  void forward_layers(const LayerRange& range, const core::Matrix& output);
  void forward_tile(int64_t begin, int64_t end, const LayerRange& range,
                    const core::Matrix& output) const noexcept;
  void forward_in_units(const core::Matrix& output);
  void forward_layers_on_device(const LayerRange& range, const ElementMatrix& output);
  void forward_in_units_on_device(const ElementMatrix& output);
  void forward_on_device(const device::CallerMatrix& input, const device::CallerMatrix& output);
  void backward_on_device(const device::CallerMatrix& output_gradient,
                          const device::CallerMatrix& input_gradient);
  // The layer's own gradients of parameters are added to, or written.
  void backward_layer_on_device(size_t layer, const ElementMatrix& output_gradient,
                                const core::Matrix& input_gradient, bool accumulate);
  void backward_layers_on_device(const ElementMatrix& output_gradient,
                                 const core::Matrix& input_gradient);
  // Divides by the scale, and adapts it, where there is one.
  void unscale_on_host(const core::Matrix& input_gradient);
  bool gradients_are_finite();
  void step_on_device();
  // Of what is on the device; on the CPU there is nothing to lock.
  std::unique_lock<std::mutex> lock_device() const;
  // Layers of the range, those behind it being done.
  void backward_layers(const LayerRange& range, bool accumulate,
                       const ElementMatrix& output_gradient, const core::Matrix& input_gradient);
  // Told of as they come, in parts that are worth sending.
  void backward_in_parts(const ElementMatrix& output_gradient, const core::Matrix& input_gradient);
  void backward_in_units(const device::CallerMatrix& output_gradient,
                         const device::CallerMatrix& input_gradient);
  // layers(range, whether gradients are added to) computes the layers of each unit.
  void backward_units(LayerUnits::Stream* user,
                      core::FunctionRef<void(const LayerRange&, bool accumulate)> layers);
  // places_ of the layers of a unit that is whole.
  void place_values(const LayerRange& range);
  void place_gradients(const LayerRange& range, LayerUnits::Stream* user);
  void backward_tile(int64_t tile, const LayerRange& range, const ElementMatrix& output_gradient,
                     const core::Matrix& input_gradient) const noexcept;
  BackwardRowsOf<ElementMatrix> backward_rows(size_t layer, const ElementMatrix& output_gradient,
                                              const core::Matrix& input_gradient) const noexcept;
  // of weights_of() the layer.
  WeightGradient weight_gradient(size_t layer, size_t weight, const ElementMatrix& output_gradient,
                                 float* target, bool accumulate) const noexcept;
  void tell_ready(const LayerRange& range, compute::cuda::host::Stream* stream = nullptr);

  int64_t inputs_;
  uint64_t seed_;
  bool accumulate_;
  Precision precision_;
  core::Threads threads_;
  std::optional<GemmRoom> room_;  // on the CPU
  Parameters parameters_;
  LossScale loss_scale_;
  std::atomic<bool> found_non_finite_ = false;  // by a backward on the CPU that goes on
  std::unique_ptr<DeviceStack> device_;         // null: on the CPU
  std::vector<Layer> layers_;
  WeightGradients weight_gradients_;
  // Of 16 bits: the stack's input and the gradient of its output, as layers read them; and on the CPU all parameters,
  // as they were at the last forward, or the weights of the unit that is computed.
  compute::Buffer rounded_input_;
  compute::Buffer rounded_gradient_;
  compute::Buffer rounded_values_;
  int64_t rounded_elements_ = 0;  // of the weights of the largest unit
  bool is_wide_ = false;          // some layer is
  std::shared_ptr<GradientListener> listener_;
  std::shared_ptr<LayerUnits> units_;
  std::vector<LayerPlaces> places_;  // by layer, of the unit that is whole
  bool is_sharded_ = false;          // units_ have the parameters
  ElementMatrix input_;              // of the last forward
  int64_t batch_ = -1;               // of the last forward; -1: none whose backward is possible
  bool frozen_ = false;              // forward was called
  bool has_gradients_ = false;
  bool training_ = true;
  // On a device: a caller or a set of DDP parameters, which takes views too, may change parameters at any time.
  bool has_parameter_views_ = false;
  uint64_t dropout_forwards_ = 0;
  bool drops_ = false;           // the last forward was in training
  uint32_t forward_number_ = 0;  // of the last forward, as DropoutMask has it
};

}  // namespace shardrec::dense
