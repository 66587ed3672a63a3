#include "checkpoint/contents/layers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/json.h"
#include "dense/fsdp/stack_units.h"

namespace shardrec::checkpoint {

namespace {

std::byte* bytes_of(void* data) { return static_cast<std::byte*>(data); }

const char* name_of(int32_t activation) {
  return activation == SHARDREC_ACTIVATION_RELU ? "relu" : "none";
}

constexpr std::array<const char*, 4> kKinds = {"linear", "cross", "layer_norm", "dropout"};

// The members that a layer of the kind has. Linear layers have no "kind": files of releases that had no
// other kinds are read, and written, alike.
void write_layer(core::JsonWriter& json, const dense::LayerShape& layer) {
  json.begin_object();
  if (layer.kind != SHARDREC_LAYER_LINEAR) json.key("kind").text(kKinds[layer.kind]);
  switch (layer.kind) {
    case SHARDREC_LAYER_CROSS:
      json.key("rank").integer(layer.rank);
      break;
    case SHARDREC_LAYER_LAYER_NORM:
      json.key("epsilon").number(layer.epsilon);
      break;
    case SHARDREC_LAYER_DROPOUT:
      json.key("rate").number(layer.rate);
      break;
    default:
      json.key("outputs").integer(layer.outputs);
      json.key("activation").text(name_of(layer.activation));
  }
  json.end_object();
}

int32_t read_kind(const core::JsonValue& layer) {
  const auto kind = layer.find("kind");
  if (!kind) return SHARDREC_LAYER_LINEAR;
  for (size_t k = 1; k < kKinds.size(); ++k) {
    if (kind->text() == kKinds[k]) return static_cast<int32_t>(k);
  }
  kind->fail("\"" + kind->text() + "\" is unknown; accepted: cross, layer_norm, dropout");
}

shardrec_activation read_activation(const core::JsonValue& layer) {
  const core::JsonValue activation = layer.at("activation");
  if (activation.text() != "relu" && activation.text() != "none") {
    activation.fail("\"" + activation.text() + "\" is unknown; accepted: none, relu");
  }
  return activation.text() == "relu" ? SHARDREC_ACTIVATION_RELU : SHARDREC_ACTIVATION_NONE;
}

dense::LayerShape read_layer(const core::JsonValue& layer) {
  dense::LayerShape shape{.kind = read_kind(layer)};
  switch (shape.kind) {
    case SHARDREC_LAYER_CROSS:
      layer.expect_keys({"kind", "rank"});
      shape.rank = layer.at("rank").integer(0, dense::kLargestWidth);
      break;
    case SHARDREC_LAYER_LAYER_NORM:
      layer.expect_keys({"kind", "epsilon"});
      shape.epsilon = layer.at("epsilon").number();
      break;
    case SHARDREC_LAYER_DROPOUT:
      layer.expect_keys({"kind", "rate"});
      shape.rate = layer.at("rate").number();
      break;
    default:
      layer.expect_keys({"outputs", "activation"});
      shape.outputs = layer.at("outputs").integer(1, dense::kLargestWidth);
      shape.activation = read_activation(layer);
  }
  try {
    dense::check_shape(shape);
  } catch (const core::Error& error) {
    layer.fail(error.sentence());
  }
  return shape;
}

}  // namespace

LayersState::LayersState(dense::Mlp& mlp, dense::Fsdp* set)
    : mlp_(&mlp), numbers_(std::make_unique<Numbers>()) {
  mlp.fetch();
  numbers_->dropout_forwards = mlp.dropout_forwards();
  numbers_->loss_scale = mlp.loss_scale().scale;
  numbers_->finite_backwards = mlp.loss_scale().finite_backwards;
  const auto count = [&](const auto& of) {
    numbers_->steps = of.steps();
    numbers_->learning_rate = of.learning_rate_was_set() ? of.optimizer().learning_rate
                                                         : std::numeric_limits<double>::quiet_NaN();
  };
  if (set == nullptr) {
    count(mlp.parameters());
    return;
  }
  whole_.emplace(*set);
  if (set->optimizer() == nullptr) {
    core::fail(
        SHARDREC_INVALID_STATE,
        "a stack of layers whose parameters are sharded is in a checkpoint with the optimizer "
        "of its set, which has none; shardrec_checkpoint_add_fsdp takes the set without");
  }
  count(*set->optimizer());
  const int64_t first = dense::stack_units(mlp)->first_parameter();
  for (size_t p = 0; p < mlp.parameters().infos().size(); ++p) {
    whole_->add(first + static_cast<int64_t>(p), SHARDREC_FSDP_VALUES);
    for (int s = 0; s < set->optimizer()->states(); ++s) {
      whole_->add(first + static_cast<int64_t>(p), SHARDREC_FSDP_STATE + s);
    }
  }
  whole_->make_room();
}

const plan::Optimizer& LayersState::optimizer() const noexcept {
  return whole_ ? whole_->set().optimizer()->optimizer() : mlp_->parameters().optimizer();
}

// In place, or of the whole arrays.
std::vector<DenseTensor> LayersState::arrays() const {
  const dense::Parameters& parameters = mlp_->parameters();
  const std::vector<std::string> states = dense::state_names(optimizer().kind);
  std::vector<DenseTensor> tensors;
  for (const dense::ParameterInfo& info : parameters.infos()) {
    const auto add = [&](std::string name, int state) {
      std::byte* data = nullptr;
      if (whole_) {
        data = whole_->data(tensors.size());
      } else {
        data = bytes_of(state < 0 ? parameters.values(info.offset)
                                  : parameters.state(state, info.offset));
      }
      tensors.push_back(
          {.name = std::move(name), .dtype = SHARDREC_FLOAT32, .shape = info.shape, .data = data});
    };
    add(info.name, -1);
    for (size_t s = 0; s < states.size(); ++s) {
      add(info.name + "." + states[s], static_cast<int>(s));
    }
  }
  return tensors;
}

std::vector<DenseTensor> LayersState::tensors(bool to_load) const {
  std::vector<DenseTensor> tensors = arrays();
  const auto add = [&](const char* name, auto& number) -> DenseTensor& {
    constexpr bool kIsReal = std::is_same_v<decltype(number), double&>;
    return tensors.emplace_back(DenseTensor{.name = name,
                                            .dtype = kIsReal ? SHARDREC_FLOAT64 : SHARDREC_INT64,
                                            .shape = {1},
                                            .data = bytes_of(&number)});
  };
  add("steps", numbers_->steps);
  add("learning_rate", numbers_->learning_rate);
  if (mlp_->has_dropout()) add("dropout_forwards", numbers_->dropout_forwards);
  if (to_load || mlp_->scales()) {
    add("loss_scale", numbers_->loss_scale).may_miss = true;
    add("finite_backwards", numbers_->finite_backwards).may_miss = true;
  }
  return tensors;
}

void LayersState::apply() noexcept {
  const auto count = [&](auto& of) {
    of.set_steps(numbers_->steps);
    if (std::isfinite(numbers_->learning_rate)) of.set_learning_rate(numbers_->learning_rate);
  };
  mlp_->set_dropout_forwards(numbers_->dropout_forwards);
  if (whole_) {
    whole_->apply();
    return count(*whole_->set().optimizer());
  }
  count(mlp_->parameters());
  if (dense::is_loss_scale(numbers_->loss_scale)) {
    mlp_->set_loss_scale({.scale = numbers_->loss_scale,
                          .finite_backwards = std::max<int64_t>(numbers_->finite_backwards, 0),
                          .skipped_steps = mlp_->loss_scale().skipped_steps});
  }
  mlp_->publish();
}

std::string LayersState::description() const {
  core::JsonWriter json;
  json.begin_object();
  json.key("inputs").integer(mlp_->inputs());
  json.key("layers").begin_array();
  for (const dense::LayerShape& layer : mlp_->shapes()) write_layer(json, layer);
  json.end_array();
  const plan::Optimizer initial = whole_ ? whole_->set().optimizer()->initial_optimizer()
                                         : mlp_->parameters().initial_optimizer();
  json.key("optimizer").text(plan::optimizer_to_json(initial));
  json.end_object();
  return json.take();
}

LayersDescription read_description(const std::string& description, const std::string& path) {
  const core::JsonDocument document(description, "the description of layers in " + path,
                                    SHARDREC_CORRUPT_DATA, path);
  const core::JsonValue root = document.root();
  root.expect_keys({"inputs", "layers", "optimizer"});
  LayersDescription read;
  read.optimizer = plan::optimizer_from_json(root.at("optimizer").text());
  read.inputs = root.at("inputs").integer(1, 65536);
  const core::JsonValue layers = root.at("layers");
  (void)layers.array_size();
  for (auto layer = layers.first(); layer; layer = layer->next()) {
    read.layers.push_back(read_layer(*layer));
  }
  return read;
}

std::unique_ptr<dense::Mlp> make_layers(const std::string& description, dense::MlpOptions options,
                                        const std::string& path) {
  const LayersDescription read = read_description(description, path);
  options.optimizer = read.optimizer;
  auto mlp = std::make_unique<dense::Mlp>(read.inputs, options);
  for (const dense::LayerShape& layer : read.layers) mlp->add(layer);
  return mlp;
}

}  // namespace shardrec::checkpoint
