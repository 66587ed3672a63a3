// What a layer of a stack is: its kind with the kind's numbers, and the parameters that follow from them.
// The formulas of the kinds stand in capi's layers.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "shardrec/layers.h"

namespace shardrec::dense {

inline constexpr int64_t kLargestWidth = 65536;
inline constexpr double kUsualEpsilon = 1e-5;

// Numbers that the kind does not have are 0. Before check_shape() any number may stand for a kind or an activation.
struct LayerShape {
  int32_t kind = SHARDREC_LAYER_LINEAR;           // a shardrec_layer_kind
  int32_t activation = SHARDREC_ACTIVATION_NONE;  // a shardrec_activation
  int64_t outputs = 0;                            // of a linear layer
  int64_t rank = 0;                               // of a cross layer; 0: its matrix is whole
  double epsilon = 0;                             // of a layer norm, above 0
  double rate = 0;                                // of a dropout layer
};

// Throws INVALID_ARGUMENT, naming the member.
void check_shape(const LayerShape& shape);

int64_t outputs_of(const LayerShape& shape, int64_t inputs) noexcept;

// What a parameter is to its layer. The number is the random stream of its initial values.
enum class Role : uint8_t { kWeight = 0, kBias = 1, kDown = 2 };
inline constexpr size_t kRoles = 3;

// "weight", "bias", "down".
const char* name_of(Role role) noexcept;

struct LayerParameter {
  Role role = Role::kWeight;
  std::vector<int64_t> shape;
  double deviation = 0;  // of initial values that are normal; 0: they are all `constant`
  float constant = 0;
};

// In the order in which the stack has them.
std::vector<LayerParameter> parameters_of(const LayerShape& shape, int64_t inputs);

// "layer.3.weight"
std::string parameter_name(size_t layer, Role role);

// The weight matrices of the layer, [outputs, inputs] each: what it multiplies by.
struct WeightShape {
  Role role = Role::kWeight;
  int64_t outputs = 0;
  int64_t inputs = 0;
};
struct WeightShapes {
  size_t count = 0;
  std::array<WeightShape, 2> shapes;

  const WeightShape* begin() const noexcept { return shapes.data(); }
  const WeightShape* end() const noexcept { return shapes.data() + count; }
};
WeightShapes weights_of(const LayerShape& shape, int64_t inputs) noexcept;

// The parameters of the layer that are vectors, all of one size, in the order in which the stack has them.
struct VectorRoles {
  size_t count = 0;
  std::array<Role, 2> roles{};
};
VectorRoles vectors_of(const LayerShape& shape) noexcept;

}  // namespace shardrec::dense
