#include "dense/layers/shape.h"

#include <charconv>
#include <cmath>

#include "core/error.h"

namespace shardrec::dense {
namespace {

constexpr double kLeastEpsilon = 1e-30;
constexpr double kMostEpsilon = 1e30;
constexpr std::array<const char*, 4> kKinds = {"linear", "cross", "layer norm", "dropout"};
constexpr std::array<const char*, kRoles> kRoleNames = {"weight", "bias", "down"};

std::string text_of(int64_t value) { return std::to_string(value); }
std::string text_of(double value) {
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}

template <class Value>
[[noreturn]] void refuse(const LayerShape& shape, const char* member, Value value,
                         const char* accepted) {
  core::fail(SHARDREC_INVALID_ARGUMENT,
             core::sentence(member, " of a ", kKinds[static_cast<size_t>(shape.kind)], " layer is ",
                            text_of(value), "; ", accepted, " is accepted"));
}

void check_linear(const LayerShape& shape) {
  if (shape.outputs < 1 || shape.outputs > kLargestWidth) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("a linear layer cannot have ", shape.outputs, " outputs; 1 .. ",
                              kLargestWidth, " is accepted"),
               {.value = shape.outputs, .limit = kLargestWidth + 1});
  }
  const int32_t activation = shape.activation;
  if (activation != SHARDREC_ACTIVATION_NONE && activation != SHARDREC_ACTIVATION_RELU) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("there is no activation number ", activation,
                              "; NONE and RELU are accepted"),
               {.value = activation});
  }
}

// Members of other kinds are 0.
void check_others(const LayerShape& shape) {
  const auto kind = shape.kind;
  if (kind != SHARDREC_LAYER_LINEAR) {
    if (shape.outputs != 0) refuse(shape, "outputs", shape.outputs, "0");
    const int64_t activation = shape.activation;
    if (activation != SHARDREC_ACTIVATION_NONE) refuse(shape, "activation", activation, "NONE");
  }
  if (kind != SHARDREC_LAYER_CROSS && shape.rank != 0) refuse(shape, "rank", shape.rank, "0");
  if (kind != SHARDREC_LAYER_LAYER_NORM && shape.epsilon != 0) {
    refuse(shape, "epsilon", shape.epsilon, "0");
  }
  if (kind != SHARDREC_LAYER_DROPOUT && shape.rate != 0) refuse(shape, "rate", shape.rate, "0");
}

double normal_deviation(int64_t rows, int64_t columns) {
  return std::sqrt(2 / (static_cast<double>(rows) + static_cast<double>(columns)));
}

}  // namespace

void check_shape(const LayerShape& shape) {
  const int32_t kind = shape.kind;
  if (kind < 0 || kind >= static_cast<int32_t>(kKinds.size())) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("there is no layer kind number ", kind,
                              "; LINEAR, CROSS, LAYER_NORM and DROPOUT are accepted"),
               {.value = kind});
  }
  check_others(shape);
  switch (shape.kind) {
    case SHARDREC_LAYER_CROSS:
      if (shape.rank < 0 || shape.rank > kLargestWidth) {
        refuse(shape, "rank", shape.rank, "0 .. 65536");
      }
      break;
    case SHARDREC_LAYER_LAYER_NORM:
      if (!(shape.epsilon >= kLeastEpsilon && shape.epsilon <= kMostEpsilon)) {
        refuse(shape, "epsilon", shape.epsilon, "1e-30 .. 1e30");
      }
      break;
    case SHARDREC_LAYER_DROPOUT:
      if (!(shape.rate >= 0 && shape.rate < 1)) {
        refuse(shape, "rate", shape.rate, "a number from 0 to below 1");
      }
      break;
    default:
      check_linear(shape);
  }
}

int64_t outputs_of(const LayerShape& shape, int64_t inputs) noexcept {
  return shape.kind == SHARDREC_LAYER_LINEAR ? shape.outputs : inputs;
}

const char* name_of(Role role) noexcept { return kRoleNames[static_cast<size_t>(role)]; }

std::string parameter_name(size_t layer, Role role) {
  return core::sentence("layer.", layer, ".", name_of(role));
}

WeightShapes weights_of(const LayerShape& shape, int64_t inputs) noexcept {
  if (shape.kind == SHARDREC_LAYER_LINEAR) {
    return {1, {{{Role::kWeight, shape.outputs, inputs}, {}}}};
  }
  if (shape.kind != SHARDREC_LAYER_CROSS) return {};
  if (shape.rank == 0) return {1, {{{Role::kWeight, inputs, inputs}, {}}}};
  return {2, {{{Role::kDown, shape.rank, inputs}, {Role::kWeight, inputs, shape.rank}}}};
}

VectorRoles vectors_of(const LayerShape& shape) noexcept {
  switch (shape.kind) {
    case SHARDREC_LAYER_DROPOUT:
      return {};
    case SHARDREC_LAYER_LAYER_NORM:
      return {2, {Role::kWeight, Role::kBias}};
    default:
      return {1, {Role::kBias}};
  }
}

std::vector<LayerParameter> parameters_of(const LayerShape& shape, int64_t inputs) {
  if (shape.kind == SHARDREC_LAYER_DROPOUT) return {};
  if (shape.kind == SHARDREC_LAYER_LAYER_NORM) {
    return {{.role = Role::kWeight, .shape = {inputs}, .constant = 1},
            {.role = Role::kBias, .shape = {inputs}}};
  }
  std::vector<LayerParameter> parameters;
  for (const WeightShape& weight : weights_of(shape, inputs)) {
    parameters.push_back({.role = weight.role,
                          .shape = {weight.outputs, weight.inputs},
                          .deviation = normal_deviation(weight.inputs, weight.outputs)});
  }
  const int64_t outputs = outputs_of(shape, inputs);
  parameters.push_back({.role = Role::kBias,
                        .shape = {outputs},
                        .deviation = std::sqrt(1 / static_cast<double>(outputs))});
  return parameters;
}

}  // namespace shardrec::dense
