#include "dense/layers/mlp.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace shardrec::dense {
namespace {

constexpr int64_t kRoundGrain = 16384;  // elements

Precision checked(Precision precision, const device::ContextOptions& place) {
  if (precision == Precision::kTfloat32 && place.device < 0) {
    core::fail(SHARDREC_UNSUPPORTED,
               "the precision TFLOAT32 is of the tensor cores of a CUDA device (option DEVICE): "
               "processors "
               "multiply FLOAT32 no slower");
  }
  return precision;
}

}  // namespace

Mlp::Mlp(int64_t inputs, const MlpOptions& options)
    : inputs_(inputs),
      seed_(options.seed),
      accumulate_(options.accumulate),
      precision_(checked(options.precision, options.place)),
      threads_(options.threads),
      parameters_(options.optimizer),
      loss_scale_(scales() ? options.loss_scale : LossScaleOptions{.scale = 1}),
      rounded_input_(compute::cpu_memory()),
      rounded_gradient_(compute::cpu_memory()),
      rounded_values_(compute::cpu_memory()) {
  if (inputs < 1 || inputs > kLargestWidth) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("a stack of layers cannot have ", inputs, " inputs; 1 .. ",
                              kLargestWidth, " is accepted"),
               {.value = inputs, .limit = kLargestWidth + 1});
  }
  if (options.place.device < 0) {
    room_.emplace(threads_.count());
  } else {
    device_ = std::make_unique<DeviceStack>(options.place, precision_, parameters_, loss_scale_);
    rounded_input_ = compute::Buffer(device_->context.memory());
    rounded_gradient_ = compute::Buffer(device_->context.memory());
  }
}

int64_t Mlp::outputs() const noexcept { return layers_.empty() ? inputs_ : layers_.back().outputs; }

std::vector<LayerShape> Mlp::shapes() const {
  std::vector<LayerShape> shapes;
  for (const Layer& layer : layers_) shapes.push_back(layer.shape);
  return shapes;
}

bool Mlp::has_dropout() const noexcept {
  return std::ranges::any_of(layers_,
                             [](const Layer& layer) { return layer.is(SHARDREC_LAYER_DROPOUT); });
}

void Mlp::add(const LayerShape& shape) {
  if (frozen_) {
    core::fail(SHARDREC_INVALID_STATE,
               "a layer was added after the first forward; add all layers before it");
  }
  if (listener_ != nullptr || (units_ != nullptr && !units_->expired())) {
    core::fail(SHARDREC_INVALID_STATE, core::sentence("a layer was added after shardrec_",
                                                      listener_ != nullptr ? "ddp" : "fsdp",
                                                      "_add_mlp; add all layers before it"));
  }
  check_shape(shape);
  const int64_t inputs = outputs();
  fetch();
  layers_.reserve(layers_.size() + 1);
  weight_gradients_.reserve(weights_of(shape, inputs).count);
  if (device_ != nullptr) device_->rounded_weights.reserve(weights_of(shape, inputs).count);
  layers_.push_back(append_layer(
      {.shape = shape,
       .inputs = inputs,
       .number = layers_.size(),
       .previous = layers_.empty() ? nullptr : &layers_.back(),
       .seed = seed_,
       .memory = device_ == nullptr ? compute::cpu_memory() : device_->context.memory()},
      parameters_, threads_));
  is_wide_ = is_wide_ || is_wide(shape, inputs);
  if (device_ == nullptr) return;
  const std::lock_guard lock(device_->mutex);
  device_->host_is_newer = true;
  for (const WeightShape& weight : weights_of(shape, inputs)) {
    device_->rounded_weights.add(layers_.back().offsets[static_cast<size_t>(weight.role)],
                                 weight.outputs, weight.inputs);
  }
}

// The last layer writes into the caller's memory, which need not live until backward; only a ReLU
// has to know its output again.
bool Mlp::keeps_output(size_t layer) const noexcept {
  return layer + 1 < layers_.size() || layers_[layer].has_activation();
}

compute::Element Mlp::kept_element() const noexcept {
  return device_ != nullptr ? element() : compute::Element::kFloat32;
}

// What the last layer gives is the caller's, as floats that are not rounded.
KeptMatrices Mlp::kept_matrices(size_t layer) const noexcept {
  const bool is_last = layer + 1 == layers_.size();
  return {.output = keeps_output(layer),
          .activations = is_last ? compute::Element::kFloat32 : kept_element(),
          .elements = kept_element()};
}

ElementMatrix Mlp::kept_matrix(const compute::Buffer& buffer, int64_t cols) const noexcept {
  return matrix_of(buffer, batch_, cols, kept_element());
}

ElementMatrix Mlp::input_of(size_t layer) const noexcept {
  return layer == 0 ? input_ : output_of(layer - 1, {});
}

ElementMatrix Mlp::output_of(size_t layer, const ElementMatrix& last) const noexcept {
  const KeptMatrices kept = kept_matrices(layer);
  if (!kept.output) return last;
  return matrix_of(layers_[layer].activations, batch_, layers_[layer].outputs, kept.activations);
}

LayerValues Mlp::placed_values(const Layer& layer) const noexcept {
  return {.shape = layer.shape,
          .inputs = layer.inputs,
          .outputs = layer.outputs,
          .parameters = places_[layer.number].values};
}

LayerValues Mlp::host_layer(const Layer& layer) const noexcept {
  if (is_sharded_) return placed_values(layer);
  return values_of(layer, parameters_.values(), rounds() ? floats_of(rounded_values_) : nullptr);
}

void Mlp::resize_rounded_inputs(int64_t batch) {
  if (!rounds()) return;
  resize_matrix(rounded_input_, batch, inputs_, kept_element());
  resize_matrix(rounded_gradient_, batch, outputs(), kept_element());
  if (device_ != nullptr) {
    device_->rounded_weights.make_room();
  } else {
    rounded_values_.resize_as<float>(
        static_cast<size_t>(is_sharded_ ? rounded_elements_ : parameters_.size()));
  }
}

ElementMatrix Mlp::rounded_on_host(const core::Matrix& from, const compute::Buffer& buffer,
                                   float scale) {
  const ElementMatrix rounded = kept_matrix(buffer, from.cols);
  const core::Matrix to = rounded.floats();
  threads_.parallel_for(from.rows, std::max<int64_t>(kRoundGrain / from.cols, 1),
                        [&](int64_t begin, int64_t end) {
                          const Kernels& table = kernels();
                          const auto round = rounding_to(element(), table);
                          for (int64_t r = begin; r < end; ++r) {
                            std::copy_n(from.row(r), from.cols, to.row(r));
                            table.scale(to.row(r), scale, from.cols);
                            round(to.row(r), to.row(r), from.cols);
                          }
                        });
  return rounded;
}

void Mlp::round_weights_on_host() {
  float* const to = floats_of(rounded_values_);
  threads_.parallel_for(parameters_.size(), kRoundGrain, [&](int64_t begin, int64_t end) {
    rounding_to(element(), kernels())(parameters_.values(begin), to + begin, end - begin);
  });
}

int64_t Mlp::tile_rows() const noexcept { return dense::tile_rows(batch_, is_wide_); }

int64_t Mlp::tile_count() const noexcept { return (batch_ + tile_rows() - 1) / tile_rows(); }

DropoutMask Mlp::mask_of(const Layer& layer) const noexcept {
  const double rate = layer.shape.rate;
  return {.seed = seed_,
          .layer = static_cast<uint32_t>(layer.number),
          .forward = forward_number_,
          .threshold = static_cast<uint32_t>(rate * 0x1p32),
          .factor = static_cast<float>(1 / (1 - rate))};
}

void Mlp::forward(const device::CallerMatrix& input, const device::CallerMatrix& output) {
  if (layers_.empty()) {
    core::fail(SHARDREC_INVALID_STATE, "the stack has no layer; add one before forward");
  }
  require_shape(input.rows, "input", input.rows.rows, inputs_);
  require_shape(output.rows, "output", input.rows.rows, outputs());
  const core::Matrix in = with_blas_stride(input.rows, "input");
  const core::Matrix out = with_blas_stride(output.rows, "output");

  std::optional<LayerUnitsUse> use;
  if (is_sharded_) {
    use.emplace(*units_);
    units_->require_forward();
  }
  batch_ = -1;
  {
    const auto lock = lock_device();
    for (size_t l = 0; l < layers_.size(); ++l) {
      resize_for_forward(layers_[l], in.rows, kept_matrices(l));
    }
    resize_rounded_inputs(in.rows);
  }
  frozen_ = true;
  drops_ = training_ && has_dropout();
  forward_number_ = static_cast<uint32_t>(dropout_forwards_);
  if (device_ != nullptr) {
    forward_on_device({in, input.on_device}, {out, output.on_device});
    if (drops_) ++dropout_forwards_;
    return;
  }
  batch_ = in.rows;
  input_ = rounds() ? rounded_on_host(in, rounded_input_) : in;
  if (is_sharded_) {
    forward_in_units(out);
  } else {
    if (rounds()) round_weights_on_host();
    forward_layers({.begin = 0, .end = layers_.size()}, out);
  }
  if (drops_) ++dropout_forwards_;
}

void Mlp::forward_layers(const LayerRange& range, const core::Matrix& output) {
  const int64_t rows = tile_rows();
  threads_.parallel_for(tile_count(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      forward_tile(tile * rows, std::min((tile + 1) * rows, batch_), range, output);
    }
  });
}

// All rows of the batch, but for the mask.
ForwardRowsOf<ElementMatrix> Mlp::forward_rows(size_t l,
                                               const ElementMatrix& output) const noexcept {
  const Layer& layer = layers_[l];
  ForwardRowsOf<ElementMatrix> all{.x = input_of(l), .y = output_of(l, output)};
  const bool is_last = l + 1 == layers_.size();
  all.rounding = {.inner = element(), .result = is_last ? compute::Element::kFloat32 : element()};
  if (layer.is(SHARDREC_LAYER_CROSS)) {
    all.origin = input_of(layer.run);
    all.product = kept_matrix(layer.products, layer.inputs);
    all.low = kept_matrix(layer.low, layer.shape.rank);
  }
  if (layer.is(SHARDREC_LAYER_LAYER_NORM)) {
    all.statistics = floats_of(layer.statistics);
  }
  return all;
}

void Mlp::forward_tile(int64_t begin, int64_t end, const LayerRange& range,
                       const core::Matrix& output) const noexcept {
  for (size_t l = range.begin; l < range.end; ++l) {
    const DropoutMask mask = mask_of(layers_[l]);
    const ForwardRowsOf<ElementMatrix> all = forward_rows(l, output);
    const auto tile_of = [&](const ElementMatrix& matrix) {
      return rows_of(matrix.floats(), begin, end - begin);
    };
    forward_layer(room_->gemm(), host_layer(layers_[l]),
                  {.origin = tile_of(all.origin),
                   .x = tile_of(all.x),
                   .y = tile_of(all.y),
                   .product = tile_of(all.product),
                   .low = tile_of(all.low),
                   .statistics = all.statistics == nullptr ? nullptr : all.statistics + 2 * begin,
                   .mask = drops_ ? &mask : nullptr,
                   .first_row = begin,
                   .rounding = all.rounding});
  }
  const size_t last = layers_.size() - 1;
  if (range.end <= last || !keeps_output(last)) return;
  const core::Matrix y = output_of(last, output).floats();
  for (int64_t r = begin; r < end; ++r) std::copy_n(y.row(r), y.cols, output.row(r));
}

void Mlp::set_listener(std::shared_ptr<GradientListener> listener) {
  if (layers_.empty()) {
    core::fail(SHARDREC_INVALID_STATE, "the stack has no layer; add all layers first");
  }
  if (listener_ != nullptr && !listener_->expired()) {
    core::fail(SHARDREC_INVALID_STATE, "the stack is in a set of DDP parameters already");
  }
  if (units_ != nullptr && !units_->expired()) {
    core::fail(SHARDREC_INVALID_STATE, "the stack is in a set of sharded parameters already");
  }
  require_own_parameters("shardrec_ddp_add_mlp");
  listener_ = std::move(listener);
}

void Mlp::zero_gradients() {
  require_own_parameters("zero_gradients");
  std::fill_n(parameters_.gradients(), parameters_.size(), 0.0F);
  if (device_ == nullptr) return;
  const std::lock_guard lock(device_->mutex);
  device_->zero_gradients();
}

void Mlp::step() {
  require_own_parameters("step");
  if (!has_gradients_) {
    core::fail(SHARDREC_INVALID_STATE, "step was called without a backward before it");
  }
  if (device_ != nullptr) {
    step_on_device();
  } else if (!scales() || gradients_are_finite()) {
    parameters_.step(threads_);
  } else {
    loss_scale_.count_skipped_step();
  }
}

}  // namespace shardrec::dense
