// The inner loops of layers, the dot interaction, and the optimizers of parameters that are no tables
// (cuda_plugin.h). Formulas, and the order of each sum: dense/kernels.h.
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

// dense::ElementMatrix. Row r begins r * stride elements behind data. Numbers of 16 bits are widened when they are
// read, and rounded to nearest when they are written. Matrices of a job are of floats or of one type of 16 bits; what is
// not said to be of either is of floats.
typedef struct shardrec_cuda_matrix {
  void *data;
  int64_t rows;
  int64_t cols;
  int64_t stride;
  int32_t element;   // SHARDREC_CUDA_FLOAT32, SHARDREC_CUDA_FLOAT16 or SHARDREC_CUDA_BFLOAT16
  int32_t reserved;  // 0: jobs are equal where their bytes are
} shardrec_cuda_matrix;

struct shardrec_cuda_loss_scale;  // scaling.h

// y = relu(y + bias) or y + bias. y: of either type.
typedef struct shardrec_cuda_bias {
  shardrec_cuda_matrix y;
  const float *bias;
  int32_t relu;
  int32_t reserved;  // 0
} shardrec_cuda_bias;

// dz = y <= 0 ? 0 : dy. dz may be dy. dy and dz are of one type, y of the same or of floats.
typedef struct shardrec_cuda_relu_gradient {
  shardrec_cuda_matrix y;
  shardrec_cuda_matrix dy;
  shardrec_cuda_matrix dz;
} shardrec_cuda_relu_gradient;

// sum += x. Each of either type.
typedef struct shardrec_cuda_addition {
  shardrec_cuda_matrix x;
  shardrec_cuda_matrix sum;
} shardrec_cuda_addition;

// y = x, of the other type; or y = x * scale.
typedef struct shardrec_cuda_conversion {
  shardrec_cuda_matrix x;
  shardrec_cuda_matrix y;
  const struct shardrec_cuda_loss_scale *loss_scale;  // null: x
} shardrec_cuda_conversion;

// x = number, or x *= number.
typedef struct shardrec_cuda_filling {
  shardrec_cuda_matrix x;
  float number;
  int32_t multiplies;
} shardrec_cuda_filling;

// product += bias; y = origin * product + x, with the product before it is rounded. y may be product. All are of one
// type, but that y may be of floats.
typedef struct shardrec_cuda_cross {
  const float *bias;
  shardrec_cuda_matrix origin;
  shardrec_cuda_matrix x;
  shardrec_cuda_matrix product;
  shardrec_cuda_matrix y;
} shardrec_cuda_cross;

// dz = dy * origin; sum += dy * product, or = where it starts; sum.data null: not wanted. sum is of floats, the others
// of one type.
typedef struct shardrec_cuda_cross_gradient {
  shardrec_cuda_matrix origin;
  shardrec_cuda_matrix product;
  shardrec_cuda_matrix dy;
  shardrec_cuda_matrix dz;
  shardrec_cuda_matrix sum;
  int32_t starts;
  int32_t reserved;  // 0
} shardrec_cuda_cross_gradient;

// Sums over the rows of each tile of a matrix. Of columns: parts [tiles, cols]. Of layer norm: [tiles, 2 * cols], the
// sums of dy * h before those of dy. x and dy are of one type.
typedef struct shardrec_cuda_tile_sums {
  shardrec_cuda_matrix x;
  const float *statistics;  // null: sums of columns
  shardrec_cuda_matrix dy;  // of layer norm
  int64_t tile_rows;
  float *parts;
} shardrec_cuda_tile_sums;

// The sum of `tiles` vectors of `count` floats, one behind the other, in pairs of neighbours. They become scratch. With
// a loss scale it is divided by that, and what is not finite is told of.
typedef struct shardrec_cuda_tree {
  float *parts;
  int64_t tiles;  // at least 1
  int64_t count;
  float *target;
  int32_t accumulate;
  int32_t reserved;                             // 0
  struct shardrec_cuda_loss_scale *loss_scale;  // or null
} shardrec_cuda_tree;

// y is of the type of x, or of floats.
typedef struct shardrec_cuda_layer_norm {
  const float *weight;
  const float *bias;
  float epsilon;
  int32_t reserved;  // 0
  shardrec_cuda_matrix x;
  shardrec_cuda_matrix y;
  float *statistics;  // [rows, 2]: mean, r; null: not wanted
} shardrec_cuda_layer_norm;

// x and dy are of one type, dx of the same or of floats.
typedef struct shardrec_cuda_layer_norm_gradient {
  const float *weight;
  const float *statistics;
  shardrec_cuda_matrix x;
  shardrec_cuda_matrix dy;
  shardrec_cuda_matrix dx;
} shardrec_cuda_layer_norm_gradient;

// dense::DropoutMask, on all rows of a batch. y may be x. y is of the type of x, or of floats.
typedef struct shardrec_cuda_dropout {
  uint64_t seed;
  const uint32_t *forward;  // a word of the device, which is read when it takes place
  uint32_t layer;
  uint32_t threshold;
  float factor;
  int32_t reserved;  // 0
  shardrec_cuda_matrix x;
  shardrec_cuda_matrix y;
} shardrec_cuda_dropout;

// compute::ElementUpdate of elements [0, count); with a loss scale, of a step that it may skip, with its bias corrections.
typedef struct shardrec_cuda_element_update {
  float *weights;
  const float *gradients;
  float *matrices[2];
  float max_gradient;  // 0: no clamp
  int32_t kind;        // compute::OptimizerKind
  shardrec_cuda_optimizer_step step;
  int32_t reserved;  // 0
  int64_t count;
  float *
      sums;  // LAMB: room for two floats, then for two of each block of SHARDREC_CUDA_ELEMENT_BLOCK elements
  const struct shardrec_cuda_loss_scale *loss_scale;  // or null
} shardrec_cuda_element_update;

// Elements of which LAMB takes one sum (dense/extents.h).
#define SHARDREC_CUDA_ELEMENT_BLOCK 16384

// The dot interaction of each row. Of its gradients, dense and embeddings are the inputs.
typedef struct shardrec_cuda_interaction {
  int64_t features;
  int64_t dim;
  shardrec_cuda_matrix dense;
  shardrec_cuda_matrix embeddings;
  shardrec_cuda_matrix out;  // forward: written; backward: its gradient
  shardrec_cuda_matrix dense_gradient;
  shardrec_cuda_matrix embedding_gradient;
} shardrec_cuda_interaction;

#ifdef __cplusplus
}
#endif

// The operations, each with what it takes behind its stream; and the functions that load their kernels.
#define SHARDREC_CUDA_LAYERS_OPERATIONS(OPERATION)                                  \
  OPERATION(add_bias, const shardrec_cuda_bias *bias)                               \
  OPERATION(mask_gradients, const shardrec_cuda_relu_gradient *gradient)            \
  OPERATION(add_matrix, const shardrec_cuda_addition *addition)                     \
  OPERATION(convert_matrix, const shardrec_cuda_conversion *conversion)             \
  OPERATION(fill_numbers, const shardrec_cuda_filling *filling)                     \
  OPERATION(sum_tiles, const shardrec_cuda_tile_sums *sums)                         \
  OPERATION(add_tree, const shardrec_cuda_tree *tree)                               \
  OPERATION(cross_rows, const shardrec_cuda_cross *cross)                           \
  OPERATION(cross_gradients, const shardrec_cuda_cross_gradient *gradient)          \
  OPERATION(normalize_rows, const shardrec_cuda_layer_norm *norm)                   \
  OPERATION(normalize_gradients, const shardrec_cuda_layer_norm_gradient *gradient) \
  OPERATION(drop_elements, const shardrec_cuda_dropout *dropout)                    \
  OPERATION(update_elements, const shardrec_cuda_element_update *update)            \
  OPERATION(interact, const shardrec_cuda_interaction *interaction)                 \
  OPERATION(interaction_gradients, const shardrec_cuda_interaction *interaction)
#define SHARDREC_CUDA_LAYERS_LOADERS(LOADER) \
  LOADER(load_matrices)                      \
  LOADER(load_tile_sums)                     \
  LOADER(load_layer_norm)                    \
  LOADER(load_dropout)                       \
  LOADER(load_element_updates)               \
  LOADER(load_interaction)
