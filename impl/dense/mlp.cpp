#include "dense/mlp.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>

#include "core/error.h"
#include "dense/kernels.h"
#include "dense/linear.h"

namespace shardrec::dense {
namespace {

constexpr int64_t kLargestWidth = 65536;
constexpr int64_t kWeightBlock = 128;  // rows of W in one task of its gradient
constexpr int64_t kChunkRows = 1024;   // samples in one task of a weight gradient, at least
constexpr int64_t kMostChunks = 16;
constexpr int64_t kMostPartials = int64_t{4}
                                  << 20;  // floats of partial weight gradients of a layer
constexpr int64_t kAddGrain = 8192;
constexpr int64_t kPart = int64_t{1} << 18;  // floats of gradients that are told of as they come

const float* data(const core::Scratch& scratch) noexcept {
  return static_cast<const float*>(static_cast<const void*>(scratch.data()));
}
float* writable(const core::Scratch& scratch) noexcept { return const_cast<float*>(data(scratch)); }

void require_shape(const core::Matrix& matrix, const char* name, int64_t rows, int64_t cols) {
  if (matrix.rows == rows && matrix.cols == cols) return;
  core::fail(SHARDREC_INVALID_ARGUMENT,
             core::sentence(name, " has shape [", matrix.rows, ", ", matrix.cols, "]; [", rows,
                            ", ", cols, "] is accepted"));
}

// parts[0] += parts[1] + ..., each part `stride` apart, elements [begin, end), in pairs of
// neighbours.
void add_tree(float* parts, int64_t count, int64_t stride, int64_t begin, int64_t end) noexcept {
  const auto add = kernels().add;
  for (int64_t step = 1; step < count; step *= 2) {
    for (int64_t i = 0; i + step < count; i += 2 * step) {
      add(parts + (i + step) * stride + begin, parts + i * stride + begin, end - begin);
    }
  }
}

}  // namespace

Mlp::Mlp(int64_t inputs, const MlpOptions& options)
    : inputs_(inputs),
      seed_(options.seed),
      accumulate_(options.accumulate),
      threads_(options.threads),
      room_(threads_.count()),
      gemm_(room_.gemm()),
      parameters_(options.optimizer) {
  if (inputs >= 1 && inputs <= kLargestWidth) return;
  core::fail(SHARDREC_INVALID_ARGUMENT,
             core::sentence("a stack of layers cannot have ", inputs, " inputs; 1 .. ",
                            kLargestWidth, " is accepted"),
             {.value = inputs, .limit = kLargestWidth + 1});
}

int64_t Mlp::outputs() const noexcept { return layers_.empty() ? inputs_ : layers_.back().outputs; }

std::vector<LayerShape> Mlp::shapes() const {
  std::vector<LayerShape> shapes;
  for (const Layer& layer : layers_) shapes.push_back({layer.outputs, layer.activation});
  return shapes;
}

void Mlp::add_linear(int64_t outputs, shardrec_activation activation) {
  if (frozen_) {
    core::fail(SHARDREC_INVALID_STATE,
               "a layer was added after the first forward; add all layers before it");
  }
  if (listener_ != nullptr) {
    core::fail(SHARDREC_INVALID_STATE,
               "a layer was added after shardrec_ddp_add_mlp; add all layers before it");
  }
  if (outputs < 1 || outputs > kLargestWidth) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("a linear layer cannot have ", outputs, " outputs; 1 .. ",
                              kLargestWidth, " is accepted"),
               {.value = outputs, .limit = kLargestWidth + 1});
  }
  if (activation != SHARDREC_ACTIVATION_NONE && activation != SHARDREC_ACTIVATION_RELU) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("there is no activation number ", static_cast<int>(activation),
                              "; NONE and RELU are accepted"),
               {.value = static_cast<int>(activation)});
  }
  Layer layer;
  layer.inputs = this->outputs();
  layer.outputs = outputs;
  layer.activation = activation;
  layer.weight = parameters_.size();
  layer.bias = layer.weight + layer.inputs * outputs;
  const std::string prefix = core::sentence("layer.", layers_.size());
  std::vector<ParameterInfo> added(2);
  added[0].name = prefix + ".weight";
  added[0].shape = {outputs, layer.inputs};
  added[0].size = layer.inputs * outputs;
  added[1].name = prefix + ".bias";
  added[1].shape = {outputs};
  added[1].size = outputs;
  layers_.reserve(layers_.size() + 1);
  parameters_.append(std::move(added));

  const auto number = static_cast<uint32_t>(layers_.size());
  const auto in = static_cast<double>(layer.inputs);
  const auto out = static_cast<double>(outputs);
  fill_normal({parameters_.values(layer.weight), static_cast<size_t>(layer.inputs * outputs)},
              std::sqrt(2 / (in + out)), seed_, number, 0, threads_);
  fill_normal({parameters_.values(layer.bias), static_cast<size_t>(outputs)}, std::sqrt(1 / out),
              seed_, number, 1, threads_);
  is_wide_ = is_wide_ || is_wide(layer.inputs, outputs);
  layers_.push_back(std::move(layer));
}

// The last layer writes into the caller's memory, which need not live until backward; only a ReLU
// has to know its output again.
bool Mlp::has_buffers(size_t layer) const noexcept {
  return layer + 1 < layers_.size() || layers_[layer].activation == SHARDREC_ACTIVATION_RELU;
}

core::Matrix Mlp::output_of(size_t layer, const core::Matrix& last) const noexcept {
  if (!has_buffers(layer)) return last;
  const int64_t cols = layers_[layer].outputs;
  return {writable(layers_[layer].activations), batch_, cols, cols};
}

core::Matrix Mlp::gradient_of(size_t layer, const core::Matrix& last) const noexcept {
  if (!has_buffers(layer)) return last;
  const int64_t cols = layers_[layer].outputs;
  return {writable(layers_[layer].gradients), batch_, cols, cols};
}

void Mlp::forward(const core::Matrix& input, const core::Matrix& output) {
  if (layers_.empty()) {
    core::fail(SHARDREC_INVALID_STATE, "the stack has no layer; add one before forward");
  }
  require_shape(input, "input", input.rows, inputs_);
  require_shape(output, "output", input.rows, outputs());
  const core::Matrix in = with_blas_stride(input, "input");
  const core::Matrix out = with_blas_stride(output, "output");

  batch_ = -1;
  for (size_t l = 0; l < layers_.size(); ++l) {
    if (!has_buffers(l)) continue;
    layers_[l].activations.resize_as<float>(static_cast<size_t>(in.rows * layers_[l].outputs));
  }
  frozen_ = true;
  input_ = in;
  batch_ = in.rows;
  const int64_t rows = tile_rows();
  threads_.parallel_for(tile_count(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      forward_tile(tile * rows, std::min((tile + 1) * rows, batch_), out);
    }
  });
}

void Mlp::forward_tile(int64_t begin, int64_t end, const core::Matrix& output) const noexcept {
  const auto rows = [&](const core::Matrix& of) {
    return core::Matrix{of.row(begin), end - begin, of.cols, of.stride};
  };
  core::Matrix x = input_;
  for (size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    const core::Matrix y = output_of(l, output);
    linear_forward(gemm_,
                   {.inputs = layer.inputs,
                    .outputs = layer.outputs,
                    .weight = parameters_.values(layer.weight),
                    .bias = parameters_.values(layer.bias),
                    .relu = layer.activation == SHARDREC_ACTIVATION_RELU},
                   rows(x), rows(y));
    x = y;
  }
  if (!has_buffers(layers_.size() - 1)) return;
  for (int64_t r = begin; r < end; ++r) std::copy_n(x.row(r), x.cols, output.row(r));
}

int64_t Mlp::tile_rows() const noexcept { return dense::tile_rows(batch_, is_wide_); }

int64_t Mlp::tile_count() const noexcept { return (batch_ + tile_rows() - 1) / tile_rows(); }

Mlp::Cut Mlp::cut(const Layer& layer) const noexcept {
  const int64_t most =
      std::clamp(kMostPartials / (layer.inputs * layer.outputs), int64_t{1}, kMostChunks);
  const int64_t wanted = std::clamp((batch_ + kChunkRows - 1) / kChunkRows, int64_t{1}, most);
  Cut cut;
  cut.rows = std::max<int64_t>((batch_ + wanted - 1) / wanted, 1);
  cut.chunks = (batch_ + cut.rows - 1) / cut.rows;
  cut.block_rows = is_wide_ ? 2 * kWeightBlock : kWeightBlock;
  cut.blocks = (layer.outputs + cut.block_rows - 1) / cut.block_rows;
  return cut;
}

void Mlp::backward(const core::Matrix& output_gradient, const core::Matrix& input_gradient) {
  if (batch_ < 0) {
    core::fail(SHARDREC_INVALID_STATE, "backward was called without a forward before it");
  }
  require_shape(output_gradient, "output_gradient", batch_, outputs());
  const core::Matrix dy = with_blas_stride(output_gradient, "output_gradient");
  core::Matrix dx = input_gradient;
  if (dx.data != nullptr) {
    require_shape(dx, "input_gradient", batch_, inputs_);
    dx = with_blas_stride(dx, "input_gradient");
  }
  if (listener_ != nullptr) listener_->before_backward();
  if (batch_ == 0) {
    if (!accumulate_) zero_gradients();
    has_gradients_ = true;
    tell_ready({.begin = 0, .end = layers_.size()});
    return;
  }

  const int64_t tiles = tile_count();
  for (size_t l = 0; l < layers_.size(); ++l) {
    Layer& layer = layers_[l];
    const Cut its = cut(layer);
    if (has_buffers(l))
      layer.gradients.resize_as<float>(static_cast<size_t>(batch_ * layer.outputs));
    layer.bias_sums.resize_as<float>(static_cast<size_t>(tiles * layer.outputs));
    if (in_parts(its)) {
      layer.partials.resize_as<float>(
          static_cast<size_t>(its.chunks * layer.inputs * layer.outputs));
    }
  }
  // Where somebody wants gradients as they come, they come in parts that are worth sending.
  size_t end = layers_.size();
  int64_t elements = 0;
  for (size_t l = layers_.size(); l-- > 0;) {
    elements += layers_[l].outputs * (layers_[l].inputs + 1);
    if (l > 0 && (listener_ == nullptr || elements < kPart)) continue;
    backward_layers({.begin = l, .end = end}, dy, dx);
    end = l;
    elements = 0;
  }
  has_gradients_ = true;
}

void Mlp::backward_layers(const LayerRange& range, const core::Matrix& output_gradient,
                          const core::Matrix& input_gradient) {
  threads_.parallel_for(tile_count(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      backward_tile(tile, range, output_gradient, input_gradient);
    }
  });

  int64_t tasks = 0;
  for (size_t l = range.begin; l < range.end; ++l) {
    tasks += cut(layers_[l]).chunks * cut(layers_[l]).blocks;
  }
  threads_.parallel_for(tasks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      int64_t rest = task;
      for (size_t l = range.begin; l < range.end; ++l) {
        const Cut its = cut(layers_[l]);
        const int64_t count = its.chunks * its.blocks;
        if (rest < count) {
          weight_gradient(layers_[l], its, rest, gradient_of(l, output_gradient),
                          l == 0 ? input_ : output_of(l - 1, output_gradient));
          break;
        }
        rest -= count;
      }
    }
  });
  for (size_t l = range.begin; l < range.end; ++l) add_up(layers_[l], cut(layers_[l]));
  tell_ready(range);
}

// Each layer has two parameters.
void Mlp::tell_ready(const LayerRange& range) {
  if (listener_ == nullptr) return;
  listener_->ready(static_cast<int64_t>(2 * range.begin),
                   static_cast<int64_t>(2 * (range.end - range.begin)));
}

void Mlp::backward_tile(int64_t tile, const LayerRange& range, const core::Matrix& output_gradient,
                        const core::Matrix& input_gradient) const noexcept {
  const Kernels& table = kernels();
  const int64_t begin = tile * tile_rows();
  const int64_t rows = std::min(tile_rows(), batch_ - begin);
  core::Matrix dy =
      range.end == layers_.size() ? output_gradient : gradient_of(range.end - 1, output_gradient);
  for (size_t l = range.end; l-- > range.begin;) {
    const Layer& layer = layers_[l];
    const core::Matrix dz = gradient_of(l, output_gradient);
    if (layer.activation == SHARDREC_ACTIVATION_RELU) {
      const core::Matrix y = output_of(l, output_gradient);
      table.relu_backward(y.row(begin), y.stride, dy.row(begin), dy.stride, dz.row(begin),
                          dz.stride, rows, layer.outputs);
    }
    table.column_sums(dz.row(begin), dz.stride, rows, layer.outputs,
                      writable(layer.bias_sums) + tile * layer.outputs);
    const core::Matrix dx = l == 0 ? input_gradient : gradient_of(l - 1, output_gradient);
    if (dx.data == nullptr) return;
    const shardrec_gemm job{.m = rows,
                            .n = layer.inputs,
                            .k = layer.outputs,
                            .a = dz.row(begin),
                            .b = parameters_.values(layer.weight),
                            .c = dx.row(begin),
                            .lda = dz.stride,
                            .ldb = layer.inputs,
                            .ldc = dx.stride,
                            .beta = 0,
                            .transpose_a = 0,
                            .transpose_b = 0};
    gemm_.sgemm(&job);
    dy = dx;
  }
}

void Mlp::weight_gradient(const Layer& layer, const Cut& cut, int64_t task,
                          const core::Matrix& gradient, const core::Matrix& input) const noexcept {
  const int64_t chunk = task / cut.blocks;
  const int64_t first = task % cut.blocks * cut.block_rows;
  const int64_t row = chunk * cut.rows;
  float* target = in_parts(cut) ? writable(layer.partials) + chunk * layer.inputs * layer.outputs
                                : parameters_.gradients(layer.weight);
  const shardrec_gemm job{.m = std::min(cut.block_rows, layer.outputs - first),
                          .n = layer.inputs,
                          .k = std::min(cut.rows, batch_ - row),
                          .a = gradient.row(row) + first,
                          .b = input.row(row),
                          .c = target + first * layer.inputs,
                          .lda = gradient.stride,
                          .ldb = input.stride,
                          .ldc = layer.inputs,
                          .beta = 0,
                          .transpose_a = 1,
                          .transpose_b = 0};
  gemm_.sgemm(&job);
}

void Mlp::add_up(const Layer& layer, const Cut& cut) {
  const auto reduce = [this](float* parts, int64_t count, int64_t size, int64_t to) {
    threads_.parallel_for(size, kAddGrain, [&](int64_t begin, int64_t end) {
      add_tree(parts, count, size, begin, end);
      float* const gradients = parameters_.gradients(to);
      if (accumulate_) {
        kernels().add(parts + begin, gradients + begin, end - begin);
      } else {
        std::copy(parts + begin, parts + end, gradients + begin);
      }
    });
  };
  reduce(writable(layer.bias_sums), tile_count(), layer.outputs, layer.bias);
  if (in_parts(cut)) {
    reduce(writable(layer.partials), cut.chunks, layer.inputs * layer.outputs, layer.weight);
  }
}

void Mlp::set_listener(std::shared_ptr<GradientListener> listener) {
  if (layers_.empty()) {
    core::fail(SHARDREC_INVALID_STATE, "the stack has no layer; add all layers first");
  }
  if (listener_ != nullptr && !listener_->expired()) {
    core::fail(SHARDREC_INVALID_STATE, "the stack is in a set of DDP parameters already");
  }
  listener_ = std::move(listener);
}

void Mlp::zero_gradients() { std::fill_n(parameters_.gradients(), parameters_.size(), 0.0F); }

void Mlp::step() {
  if (!has_gradients_) {
    core::fail(SHARDREC_INVALID_STATE, "step was called without a backward before it");
  }
  parameters_.step(threads_);
}

}  // namespace shardrec::dense
