// A layer of a stack that is trained: where its parameters are, and what it keeps of a batch between
// forward and backward.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "compute/buffer.h"
#include "core/threads.h"
#include "dense/element_matrix.h"
#include "dense/layers/forward.h"
#include "dense/layers/weight_gradients.h"
#include "dense/parameters.h"

namespace shardrec::dense {

struct Layer {
  // memory: of what it keeps.
  explicit Layer(const std::shared_ptr<compute::Memory>& memory)
      : activations(memory),
        gradients(memory),
        products(memory),
        product_gradients(memory),
        low(memory),
        low_gradients(memory),
        origin_gradients(memory),
        statistics(memory),
        column_sums(memory),
        partials{compute::Buffer(memory), compute::Buffer(memory)} {}

  LayerShape shape;
  int64_t inputs = 0;
  int64_t outputs = 0;
  size_t number = 0;
  size_t run = 0;  // number of the first of the consecutive layers of its kind

  // Parameters: indices [first, first + count) of the stack's, elements [offset, offset + elements).
  int64_t first = 0;
  int64_t count = 0;
  int64_t offset = 0;
  int64_t elements = 0;
  std::array<int64_t, kRoles> offsets{};
  std::array<int64_t, kRoles> indices{-1, -1, -1};  // of the stack's parameters; -1: it has none
  int64_t sums = 0;         // elements of those that are vectors, which lie one behind the other
  size_t first_weight = 0;  // weight matrices (weights_of()) of the layers before it

  // All of a batch; empty where the kind has none. Matrices are of the elements that the stack keeps, but that the
  // activations of a last layer, the gradients of origins and what is of parameters are of floats.
  compute::Buffer activations;  // [batch, outputs]: y; unused in a last layer without activation
  compute::Buffer gradients;    // of y, and of what enters the activation; as activations
  compute::Buffer products;     // cross, [batch, inputs]: x W^T + b
  compute::Buffer product_gradients;  // cross: of them
  compute::Buffer low;                // cross with a rank, [batch, rank]: x V^T
  compute::Buffer low_gradients;
  compute::Buffer origin_gradients;         // first cross layer of a run, [batch, inputs]
  compute::Buffer statistics;               // layer norm, [batch, 2]
  compute::Buffer column_sums;              // [tiles, sums]
  std::array<compute::Buffer, 2> partials;  // of the gradients of weights_of()

  bool is(int32_t kind) const noexcept { return shape.kind == kind; }
  bool has_activation() const noexcept { return shape.activation != SHARDREC_ACTIVATION_NONE; }
};

// The parameters with their initial values, appended to the stack's. previous: null for the first layer.
// Throws OUT_OF_MEMORY and leaves the parameters as they were.
struct NewLayer {
  LayerShape shape;
  int64_t inputs = 0;
  size_t number = 0;
  const Layer* previous = nullptr;
  uint64_t seed = 0;
  std::shared_ptr<compute::Memory> memory;
};
Layer append_layer(const NewLayer& added, Parameters& parameters, core::Threads& threads);

// What is kept of a layer's matrices.
struct KeptMatrices {
  bool output = false;  // the activations too, and gradients of them
  compute::Element activations = compute::Element::kFloat32;
  compute::Element elements = compute::Element::kFloat32;  // of all others that are not of floats
};

// Memory for a batch. Throw OUT_OF_MEMORY.
void resize_for_forward(Layer& layer, int64_t batch, const KeptMatrices& kept);
void resize_for_backward(Layer& layer, const GradientBatch& batch, int64_t tiles,
                         const KeptMatrices& kept);

// all: the values of all parameters of the stack, wherever they are. weights: null, or the same where the layer takes its
// weight matrices from.
LayerValues values_of(const Layer& layer, const float* all,
                      const float* weights = nullptr) noexcept;

// Room for a matrix. Throws OUT_OF_MEMORY.
void resize_matrix(compute::Buffer& buffer, int64_t rows, int64_t cols, compute::Element element);
// The buffer as a matrix; null where it is empty.
ElementMatrix matrix_of(const compute::Buffer& buffer, int64_t rows, int64_t cols,
                        compute::Element element) noexcept;
// The buffer as floats; null where it is empty.
float* floats_of(const compute::Buffer& buffer) noexcept;

}  // namespace shardrec::dense
