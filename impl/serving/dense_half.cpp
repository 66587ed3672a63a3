#include "serving/dense_half.h"

#include <algorithm>
#include <utility>

#include "checkpoint/contents/layers.h"
#include "checkpoint/read/match.h"
#include "core/error.h"
#include "dense/loss.h"

namespace shardrec::serving {
namespace {

using dense::rows_of;

int64_t whole_lines(int64_t floats) { return (floats + 15) / 16 * 16; }

}  // namespace

Stack::Stack(const checkpoint::Opened& opened, const std::string& name) : name_(name) {
  const checkpoint::ManifestItem& item =
      checkpoint::find_item(opened, checkpoint::ItemKind::kLayers, name);
  const checkpoint::LayersDescription about =
      checkpoint::read_description(item.description, opened.directory);
  int64_t inputs = about.inputs;
  widest_ = inputs;
  for (const dense::LayerShape& layer : about.layers) {
    const int64_t outputs = dense::outputs_of(layer, inputs);
    layers_.push_back({.shape = layer, .inputs = inputs, .outputs = outputs});
    for (const dense::LayerParameter& parameter : dense::parameters_of(layer, inputs)) {
      const int64_t floats = checkpoint::elements_of(parameter.shape);
      floats_ += whole_lines(floats);
      parameter_bytes_ += floats * int64_t{sizeof(float)};
    }
    is_wide_ = is_wide_ || dense::is_wide(layer, inputs);
    inputs = outputs;
    widest_ = std::max(widest_, inputs);
    largest_rank_ = std::max(largest_rank_, whole_lines(layer.rank));
  }
  widest_ = whole_lines(widest_);
}

void Stack::read(const checkpoint::Opened& opened, core::Control* control,
                 core::Environment& environment) {
  const checkpoint::ManifestItem& item =
      checkpoint::find_item(opened, checkpoint::ItemKind::kLayers, name_);
  parameters_ = core::Pages(static_cast<size_t>(floats_) * sizeof(float));
  auto* to = static_cast<float*>(static_cast<void*>(parameters_.data()));
  const auto read_one = [&](const std::string& name, const std::vector<int64_t>& shape) {
    const auto found =
        std::find_if(item.tensors.begin(), item.tensors.end(),
                     [&](const checkpoint::ManifestDense& tensor) { return tensor.name == name; });
    if (found == item.tensors.end() || found->shape != shape || found->dtype != SHARDREC_FLOAT32) {
      core::fail(SHARDREC_CORRUPT_DATA,
                 core::sentence("the layers \"", name_, "\" of the checkpoint ", opened.directory,
                                " have no tensor \"", name, "\" of the shape that they describe"),
                 {.path = opened.directory});
    }
    const int64_t count = checkpoint::elements_of(shape);
    const std::span<float> floats(to, static_cast<size_t>(count));
    checkpoint::read_dense(opened, *found, std::as_writable_bytes(floats), environment);
    if (control != nullptr) control->advance(count * int64_t{sizeof(float)});
    to += whole_lines(count);
    return floats.data();
  };
  for (size_t l = 0; l < layers_.size(); ++l) {
    for (const auto& parameter : dense::parameters_of(layers_[l].shape, layers_[l].inputs)) {
      layers_[l].parameters[static_cast<size_t>(parameter.role)] =
          read_one(dense::parameter_name(l, parameter.role), parameter.shape);
    }
  }
}

void Stack::forward(const dense::Gemm& gemm, int64_t batch, const core::Matrix& x,
                    const core::Matrix& y, float* scratch) const noexcept {
  const int64_t tile = dense::tile_rows(batch, is_wide_);
  for (int64_t first = 0; first < x.rows; first += tile) {
    const int64_t rows = std::min(tile, x.rows - first);
    forward_tile(gemm, rows_of(x, first, rows), rows_of(y, first, rows), scratch);
  }
}

// A cross layer's output is its product's memory too, and the origin of a run stays until its end.
void Stack::forward_tile(const dense::Gemm& gemm, const core::Matrix& x, const core::Matrix& y,
                         float* scratch) const noexcept {
  const auto buffer = [&](int64_t b) { return scratch + b * dense::kMostTileRows * widest_; };
  core::Matrix from = x, origin = x;
  int32_t before = SHARDREC_LAYER_LINEAR;
  for (const dense::LayerValues& layer : layers_) {
    if (layer.shape.kind != SHARDREC_LAYER_CROSS || before != SHARDREC_LAYER_CROSS) origin = from;
    before = layer.shape.kind;
    int64_t free = 0;
    while (buffer(free) == from.data || buffer(free) == origin.data) ++free;
    const core::Matrix to = &layer == &layers_.back()
                                ? y
                                : core::Matrix{buffer(free), x.rows, layer.outputs, layer.outputs};
    const int64_t rank = layer.shape.rank;
    dense::forward_layer(gemm, layer,
                         {.origin = origin,
                          .x = from,
                          .y = to,
                          .product = to,
                          .low = {buffer(kBuffers), x.rows, rank, rank}});
    from = to;
  }
}

DenseHalf::DenseHalf(Stack bottom, Stack top, std::span<const int64_t> features)
    : bottom_(std::move(bottom)),
      top_(std::move(top)),
      shape_{std::ssize(features), bottom_.outputs()} {
  const auto refuse = [](const std::string& what) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               "the checkpoint's layers are no DLRM's with its features: " + what);
  };
  for (size_t f = 0; f < features.size(); ++f) {
    if (features[f] == shape_.dim) continue;
    refuse(core::sentence("pooled feature ", f, " in the order of the output has ", features[f],
                          " columns, the bottom layers have ", shape_.dim, " outputs"));
  }
  const int64_t crossed = shape_.dim + (shape_.features + 1) * shape_.features / 2;
  if (shape_.dim == 0 || top_.inputs() != crossed) {
    refuse(core::sentence("the interaction of ", shape_.features, " features with ", shape_.dim,
                          " columns has ", crossed, " outputs, the top layers take ",
                          top_.inputs()));
  }
}

void DenseHalf::read(const checkpoint::Opened& opened, core::Control* control,
                     core::Environment& environment) {
  bottom_.read(opened, control, environment);
  top_.read(opened, control, environment);
}

int64_t DenseHalf::scratch() const noexcept {
  return std::max(bottom_.scratch(), top_.scratch()) +
         dense::kMostTileRows * (whole_lines(shape_.dim) + whole_lines(top_.inputs())) +
         static_cast<int64_t>(dense::interaction_scratch(shape_)) + 16;
}

void DenseHalf::predict(const dense::Gemm& gemm, const core::Matrix& dense_input,
                        const core::Matrix& pooled, const core::Matrix& out, bool logits,
                        float* scratch) const noexcept {
  const auto interact = dense::kernels().interaction_forward;
  float* const vectors = scratch + std::max(bottom_.scratch(), top_.scratch());
  float* const crossed = vectors + dense::kMostTileRows * whole_lines(shape_.dim);
  float* const interaction = crossed + dense::kMostTileRows * whole_lines(top_.inputs());
  for (int64_t first = 0; first < out.rows; first += dense::kMostTileRows) {
    const int64_t rows = std::min(dense::kMostTileRows, out.rows - first);
    const core::Matrix bottom{vectors, rows, shape_.dim, shape_.dim};
    const core::Matrix top{crossed, rows, top_.inputs(), top_.inputs()};
    bottom_.forward(gemm, out.rows, rows_of(dense_input, first, rows), bottom, scratch);
    for (int64_t row = 0; row < rows; ++row) {
      interact(shape_, bottom.row(row), pooled.row(first + row), top.row(row), interaction);
    }
    const core::Matrix scores = rows_of(out, first, rows);
    top_.forward(gemm, out.rows, top, scores, scratch);
    if (logits) continue;
    for (int64_t row = 0; row < rows; ++row) {
      std::transform(scores.row(row), scores.row(row) + scores.cols, scores.row(row),
                     dense::probability_of);
    }
  }
}

}  // namespace shardrec::serving
