/* The dense half of a recommender, for hosts without a framework: stacks of layers (linear, cross,
 * layer norm, dropout), the dot interaction of a DLRM and the loss (Naumov et al. 2019). FLOAT32, on the
 * CPU or on a CUDA device. GEMMs run in a plug-in (OpenBLAS, cuBLASLt).
 *
 * All matrices: one sample a row, unit column stride, any row stride. Bits do not depend on the number
 * of threads. A steady step on the CPU allocates nothing: what OpenBLAS multiplies in, 128 MiB of addresses
 * for each thread of all stacks, but for no more than there are processors, is had when a stack is made.
 * Thread rule: one thread at a time per handle, else BUSY.
 *
 * On a device (option DEVICE, kind MLP) a stack's parameters are there, and
 * matrices may each be on that device or on the CPU. Everything takes place in the order of one stream of
 * the caller (option STREAM), also where that writes parameters through their views; calls return before
 * it has, but where they write a matrix on the CPU; of one on the CPU that they read, they return with a
 * copy on its way, and it may change. Matrix products have the bits of cuBLASLt, which repeat on one
 * device with one version of it; all else has the CPU's. All functions that use the device may also
 * return DEVICE_ERROR; what a stack computed last is then of no use. In a DDP set (shardrec_ddp_add_mlp)
 * gradients are exchanged on the device (ddp.h): the stack's views and the set's are of the same memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_LAYERS_H
#define SHARDREC_LAYERS_H

#include "shardrec/options.h"
#include "shardrec/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct shardrec_mlp shardrec_mlp;
typedef struct shardrec_interaction shardrec_interaction;

typedef enum shardrec_activation {
  SHARDREC_ACTIVATION_NONE = 0,
  SHARDREC_ACTIVATION_RELU = 1,
  SHARDREC_ACTIVATION_FORCE_32 = 0x7fffffff
} shardrec_activation;

/* What a layer computes from its input x, row by row of the batch. All but LINEAR have as many outputs
 * as inputs. x W^T is a matrix product; * multiplies element by element. */
typedef enum shardrec_layer_kind {
  SHARDREC_LAYER_LINEAR = 0, /* y = activation(x W^T + b) */
  SHARDREC_LAYER_CROSS = 1,  /* y = x0 * (x W^T + b) + x, of DCN-v2 (Wang et al. 2021) */
  SHARDREC_LAYER_LAYER_NORM = 2, /* y = (x - mean) / sqrt(variance + epsilon) * w + b (Ba et al. 2016) */
  SHARDREC_LAYER_DROPOUT = 3, /* y = 0 with probability rate, else x / (1 - rate) (Srivastava et al. 2014) */
  SHARDREC_LAYER_FORCE_32 = 0x7fffffff
} shardrec_layer_kind;

/* A layer to add (shardrec_mlp_add). Members that its kind does not read are 0. */
typedef struct shardrec_layer {
  int64_t struct_size; /* sizeof(shardrec_layer), set by the caller */
  int32_t kind;        /* a shardrec_layer_kind */
  int32_t activation;  /* of LINEAR: a shardrec_activation */
  int64_t outputs;     /* of LINEAR: columns of its output, 1 to 65536 */
  int64_t rank;        /* of CROSS: 0 for a whole matrix W, or columns of its factors, 1 to 65536 */
  double epsilon;      /* of LAYER_NORM: 1e-30 to 1e30, or 0 for 1e-5 */
  double rate;         /* of DROPOUT: probability that an element becomes 0, at least 0, below 1 */
} shardrec_layer;

/* A number of a stack that can be changed. */
typedef enum shardrec_mlp_setting {
  SHARDREC_MLP_LEARNING_RATE = 1, /* finite, >= 0; of the next step */
  SHARDREC_MLP_TRAINING = 2, /* 1 (at first) or 0; 0 for evaluation: dropout layers give their input */
  SHARDREC_MLP_SETTING_FORCE_32 = 0x7fffffff
} shardrec_mlp_setting;

/* Makes an empty stack of layers. inputs in [1, 65536]: columns of its input.
 * options: kind MLP or NULL (seed, threads, optimizer: SGD, MOMENTUM_SGD, ADAGRAD, ADAM or LAMB;
 * ACCUMULATE_GRADIENTS).
 *   SGD           w -= lr * g
 *   MOMENTUM_SGD  b = momentum * b + g; w -= lr * b; b: "momentum", 0 at first
 *   ADAGRAD       h += g^2; w -= lr * g / (sqrt(h) + eps); h: "sum"             (Duchi et al. 2011)
 *   ADAM          m, v as exponential means of g, g^2: "mean", "square";
 *                 r = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps);
 *                 w -= lr * r                                                   (Kingma, Ba 2015)
 *   LAMB          m, v, r as ADAM; w -= lr * q * r, q = norm(w) / norm(r) over the whole parameter,
 *                 1 where either is 0                                           (You et al. 2020)
 *   with weight decay L2: g + lam * w for g; DECOUPLE: w *= 1 - lr * lam before the step, of LAMB
 *   r + lam * w for r (ADAM with DECOUPLE is AdamW, Loshchilov and Hutter 2019). g is first clamped
 *   to +-MAX_GRADIENT where that is set. Up to rounding these are PyTorch's SGD (dampening 0, not
 *   Nesterov's), Adagrad, Adam and AdamW. LAMB's norms are sums in float32 over 16 lanes in each
 *   block of 16384 elements, added up in float64 by ascending block.
 * DEVICE, DEVICE_WAIT and STREAM say where it computes.
 * PRECISION says how it multiplies. Parameters, their gradients and optimizer states, and the matrices that
 * callers give, are FLOAT32 in all precisions, and so are checkpoints, DDP sets and views; a scorer computes
 * in FLOAT32 whatever a stack was trained with.
 *   FLOAT32   as written.
 *   TFLOAT32  on a device; UNSUPPORTED on the CPU, which multiplies FLOAT32 no slower. Tensor cores round
 *             the factors of a matrix product to 10 bits of mantissa, in NVIDIA's way, and add up in
 *             FLOAT32. All else is FLOAT32's.
 *   BFLOAT16  These are rounded to bfloat16 (to nearest, ties to even), and kept so on a device: input and
 *             output_gradient; outputs of all layers but the last, and their gradients; of CROSS x V^T,
 *             x W^T + b and their gradients; W and V, as they are at a forward, whose backward uses the
 *             same. A matrix product adds up exact products of them in FLOAT32, and what it writes to
 *             one of them is rounded, x W^T before b is added. The rest is computed in FLOAT32 and
 *             rounded when it is written to one of them; CROSS sums dx = ((dz W) + dy) + dx0 with a rounding
 *             after each step. Not rounded are the output of the last layer (nor its x W^T of LINEAR),
 *             input_gradient, gradients of parameters, dx0 (the sum of dy * (x W^T + b) over a run of cross
 *             layers), and mean and variance of LAYER_NORM. CPU and devices differ by the order of
 *             sums in a product alone; on the CPU it is a reference, no faster than FLOAT32.
 *   FLOAT16   As BFLOAT16, with float16 for bfloat16; too large a number becomes infinity. Gradients that
 *             float16 is too small for are kept by a scale S, a power of two (Micikevicius et al. 2018):
 *             backward multiplies output_gradient by S before it is rounded, and gradients of parameters
 *             and input_gradient by 1 / S, both in FLOAT32, so that callers, losses and DDP sets see no
 *             scale. S is the option LOSS_SCALE at first. After a backward that has given a gradient of a
 *             parameter or an input_gradient that is NaN or infinite, whatever it came from, S is halved,
 *             not below 1; after LOSS_SCALE_STEPS backwards in a row without one it is doubled, not above
 *             2^24 (PyTorch's GradScaler with the factors 2 and 0.5). Backwards of empty batches do not
 *             count. shardrec_mlp_step is skipped where a gradient of a parameter is NaN or infinite as it
 *             is then, accumulated or reduced over ranks: parameters, optimizer states and the count of steps
 *             stay as they are, and skipped_steps of shardrec_layers counts. A DDP set that steps has
 *             the option NON_FINITE SKIP for that, by which one rank's infinity is a step that all ranks
 *             skip, or ERROR; its commit is UNSUPPORTED otherwise.
 *             Each rank has its own S. On a device S is there, and so is the decision to skip: no call waits
 *             for them but shardrec_mlp_info and checkpoints. These have S and its count, but not
 *             LOSS_SCALE_STEPS, nor skipped_steps: a stack that goes on is made with the same one. Loaded
 *             from a stack of another precision, a stack keeps the S that it has.
 * In all of them a ReLU gives NaN for NaN, so that a NaN comes to the loss and to the gradients: its mask is
 * never that of a matrix product's kernel, which has 0 there.
 * out: owned by the caller. Errors: INVALID_ARGUMENT, UNSUPPORTED (a plug-in or its library is missing;
 * the sentence names the package), OUT_OF_MEMORY, DEVICE_ERROR. Since 0.1. */
SHARDREC_API shardrec_status shardrec_mlp_create(int64_t inputs,
                                                 SHARDREC_OPTIONS(MLP)
                                                 const shardrec_options *options,
                                                 shardrec_mlp **out);

/* Destroys the handle and nulls the caller's copy. Since 0.1. */
SHARDREC_API void shardrec_mlp_destroy(SHARDREC_NULLABLE shardrec_mlp **mlp);

/* Appends a layer. It is the stack's layer N where N layers were added before it, and its parameters are
 * "layer.N.weight" and so on, in this order:
 *   LINEAR      weight W [outputs, inputs], bias b [outputs]
 *   CROSS       weight W [inputs, inputs], bias b [inputs]
 *   with rank   down V [rank, inputs], weight W [inputs, rank], bias b [inputs]:
 *               y = x0 * ((x V^T) W^T + b) + x
 *   LAYER_NORM  weight w [inputs], 1 at first, bias b [inputs], 0 at first
 *   DROPOUT     none
 * Matrices are normal with deviation sqrt(2 / (rows + columns)) at first, b of LINEAR and CROSS normal
 * with sqrt(1 / size of b), all from Philox4x32-10 keyed by (seed, N).
 * CROSS: x0 is the input of the first cross layer of the consecutive ones that the layer is among. A
 * stack of cross layers alone is a cross network.
 * LAYER_NORM: mean and variance (divided by the number of columns) are those of a row. Each of their
 * sums, and of backward's two, has 16 lanes: column c is added to lane c mod 16, from 0 and by ascending
 * c, then lane i + 8 to lane i, then + 4, + 2, + 1. Squares and products are fused into the sum.
 * DROPOUT: the element of row r and column c becomes 0 where a word of Philox4x32-10 is below
 * floor(rate * 2^32), else it is multiplied by float(1 / (1 - rate)). With p = r * columns + c it is word p
 * mod 4 for the key seed and the counter (p / 4 low, p / 4 high, N, number of forwards in training before
 * this one, mod 2^32). backward uses the same words again. Checkpoints have that number, not the seed: a
 * stack that goes on is made with the same one. Ranks with the same seed drop the same elements of their
 * batches; where that is not wanted, give each a seed of its own, and broadcast the parameters.
 * Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, INVALID_STATE (after the first forward),
 * OUT_OF_MEMORY. Since 0.2. */
SHARDREC_API shardrec_status shardrec_mlp_add(shardrec_mlp *mlp, const shardrec_layer *layer);

/* A stack of layers, as it is now. */
typedef struct shardrec_layers {
  int64_t struct_size;          /* sizeof(shardrec_layers), set by the caller */
  int64_t inputs;               /* columns of the input */
  int64_t outputs;              /* columns of the output; inputs while there is no layer */
  int32_t layers;               /* number of layers that were added */
  int32_t parameters;           /* number of parameters of all layers (shardrec_mlp_add) */
  int64_t elements;             /* of all parameters together */
  int64_t step;                 /* optimizer steps (shardrec_mlp_step) */
  double learning_rate;         /* of the next step */
  shardrec_optimizer optimizer; /* that it was made with */
  int32_t states;               /* states that the optimizer keeps for each parameter, 0 to 2 */
  double loss_scale;            /* of the next backward with PRECISION FLOAT16, else 1 */
  int64_t skipped_steps;        /* with PRECISION FLOAT16, of this handle; `step` is without them */
} shardrec_layers;

/* What the stack is. out: its struct_size is set; the members that fit in it are written. Of a stack with
 * PRECISION FLOAT16 on a device the call returns when the device has done what was enqueued before.
 * Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, DEVICE_ERROR, OUT_OF_MEMORY. Since 0.2. */
SHARDREC_API shardrec_status shardrec_mlp_info(const shardrec_mlp *mlp, shardrec_layers *out);

/* Views of parameter `index` and of its gradient, compact, valid until the stack is destroyed or a
 * layer is added; each may be NULL. Write through them to set values. Of a stack on a device they are
 * there (shardrec_tensor_copy reads and writes them from the host), and the call returns when the device
 * does nothing with them any more. To train data-parallel: shardrec_ddp_add_mlp, or
 * shardrec_fsdp_add_mlp, where a rank keeps a part.
 * Errors: as shardrec_mlp_info; NOT_FOUND. Since 0.1. */
SHARDREC_API shardrec_status shardrec_mlp_parameter(
    shardrec_mlp *mlp, int32_t index, SHARDREC_NULLABLE shardrec_tensor *out_parameter,
    SHARDREC_NULLABLE shardrec_tensor *out_gradient);

/* A view of an optimizer state of parameter `index`, shaped as it; valid as shardrec_mlp_parameter's.
 * state: MOMENTUM_SGD 0 the momentum; ADAGRAD 0 the sum; ADAM and LAMB 0 the mean, 1 the mean of squares.
 * Errors: as shardrec_mlp_parameter (NOT_FOUND: state too). Since 0.2. */
SHARDREC_API shardrec_status shardrec_mlp_state(const shardrec_mlp *mlp, int32_t index,
                                                int32_t state, shardrec_tensor *out);

/* output = stack(input). input [batch, inputs], output [batch, outputs of the last layer]; batch >=
 * 0. input must stay unchanged until backward, but one on the CPU of a stack on a device. Errors:
 * INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, INVALID_STATE (no layer), OUT_OF_MEMORY.
 * Since 0.1. */
SHARDREC_API shardrec_status shardrec_mlp_forward(shardrec_mlp *mlp,
                                                  SHARDREC_KEPT const shardrec_tensor *input,
                                                  SHARDREC_WRITTEN const shardrec_tensor *output);

/* Gradients of the parameters and of the input, for the batch of the last forward. output_gradient as
 * output; input_gradient as input, or NULL when it is not wanted.
 * Gradients of the parameters are overwritten. With the option ACCUMULATE_GRADIENTS they are added
 * to, as in PyTorch, until shardrec_mlp_zero_gradients: what this batch alone would give is added in
 * float32 to what is there, zero at first, so that the sum over micro-batches is in the order of the
 * calls. For the mean, divide output_gradient by their number; reduce over ranks once, after the last
 * one. It keeps one more copy of the weights' size. input_gradient is always overwritten: it belongs
 * to its batch, as do the gradients of shardrec_interaction_backward.
 * After an error the gradients of the parameters are as before. Errors: as shardrec_mlp_forward;
 * INVALID_STATE (no forward). Since 0.1. */
SHARDREC_API shardrec_status
shardrec_mlp_backward(shardrec_mlp *mlp, const shardrec_tensor *output_gradient,
                      SHARDREC_NULLABLE SHARDREC_WRITTEN const shardrec_tensor *input_gradient);

/* Sets the gradients of all parameters to zero. A step after it without a backward goes by zero
 * gradients (weight decay and Adam's means apply). Errors: INVALID_HANDLE, CLOSED, BUSY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_mlp_zero_gradients(shardrec_mlp *mlp);

/* One optimizer step on all parameters with their gradients, which stay as they are; with PRECISION
 * FLOAT16 none where one of them is NaN or infinite (shardrec_mlp_create). Errors: INVALID_HANDLE, CLOSED,
 * BUSY, INVALID_STATE (no backward yet). Since 0.1. */
SHARDREC_API shardrec_status shardrec_mlp_step(shardrec_mlp *mlp);

/* Changes a setting for later calls. backward is that of the last forward, whatever TRAINING was set to
 * since. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT. Since 0.2. */
SHARDREC_API shardrec_status shardrec_mlp_set_f64(shardrec_mlp *mlp, shardrec_mlp_setting setting,
                                                  double value);

/* Makes a dot interaction of 1 dense and `features` embedding vectors of dim columns each.
 * features >= 0, dim >= 1. options: kind MLP (threads, DEVICE, DEVICE_WAIT, STREAM; it computes in
 * FLOAT32 whatever PRECISION is) or NULL. out: owned by the caller. Errors: INVALID_ARGUMENT,
 * UNSUPPORTED, OUT_OF_MEMORY, DEVICE_ERROR. Since 0.1. */
SHARDREC_API shardrec_status shardrec_interaction_create(int64_t features, int64_t dim,
                                                         SHARDREC_OPTIONS(MLP)
                                                         const shardrec_options *options,
                                                         shardrec_interaction **out);

/* Destroys the handle and nulls the caller's copy. Since 0.1. */
SHARDREC_API void shardrec_interaction_destroy(
    SHARDREC_NULLABLE shardrec_interaction **interaction);

/* Number of columns of its output: dim + (features + 1) * features / 2. Errors: INVALID_HANDLE, CLOSED,
 * INVALID_ARGUMENT. Since 0.1. */
SHARDREC_API shardrec_status shardrec_interaction_outputs(const shardrec_interaction *interaction,
                                                          int64_t *out);

/* output [batch, outputs] = the dense vector, then the dot products of vectors (i, j), j < i, i
 * ascending, vector 0 the dense one. dense [batch, dim], embeddings [batch, features * dim]; both must
 * stay unchanged until backward. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT. Since 0.1. */
SHARDREC_API shardrec_status shardrec_interaction_forward(
    shardrec_interaction *interaction, SHARDREC_KEPT const shardrec_tensor *dense,
    SHARDREC_KEPT const shardrec_tensor *embeddings,
    SHARDREC_WRITTEN const shardrec_tensor *output);

/* Gradients of both inputs of the last forward, overwritten. Errors: as shardrec_interaction_forward;
 * INVALID_STATE (no forward). Since 0.1. */
SHARDREC_API shardrec_status shardrec_interaction_backward(
    shardrec_interaction *interaction, const shardrec_tensor *output_gradient,
    SHARDREC_WRITTEN const shardrec_tensor *dense_gradient,
    SHARDREC_WRITTEN const shardrec_tensor *embedding_gradient);

/* Sigmoid and binary cross-entropy, averaged over the batch, on the CPU or where a stack is.
 * stack: NULL, or one on the CPU: on the CPU. A stack on a device: there, in the order of its stream;
 * matrices may each be on that device or on the CPU. The bits are the same.
 * logits, labels (0 .. 1), probabilities and gradient: FLOAT32, compact, [batch] or [batch, 1];
 * probabilities and gradient may be NULL. gradient = (sigmoid(logit) - label) / batch.
 * out_loss: the mean in nats (0 for an empty batch), for which the call waits on a device; may be NULL.
 * The loss of a logit z is max(z, 0) - z * label + log(1 + exp(-|z|)), in float64, with exp and log of the
 * library's own, whose errors are below 1 unit in the last place. The sum: the losses of 256 consecutive
 * samples, absent ones 0, are added up as a tree: i + 128 to i, then + 64, and so on to + 1. The sums of
 * these blocks have 256 lanes: that of block b is added to lane b mod 256, from 0 and by ascending b; then
 * the same tree over lanes.
 * A label outside 0 .. 1 is INVALID_ARGUMENT with its position, and nothing was written. A device notices
 * it, too, but what was asked for is written, and the next call with out_loss for the stack, which may be
 * the same one, returns the error: the position is the first one since the last such call, each in its own
 * batch.
 * Errors: INVALID_ARGUMENT; of the stack INVALID_HANDLE, CLOSED, BUSY, OUT_OF_MEMORY, DEVICE_ERROR. Any
 * thread, a stack by one at a time. Since 0.1. */
SHARDREC_API shardrec_status
shardrec_bce_with_logits(SHARDREC_NULLABLE shardrec_mlp *stack, const shardrec_tensor *logits,
                         const shardrec_tensor *labels,
                         SHARDREC_NULLABLE SHARDREC_WRITTEN const shardrec_tensor *probabilities,
                         SHARDREC_NULLABLE SHARDREC_WRITTEN const shardrec_tensor *gradient,
                         SHARDREC_NULLABLE double *out_loss);

#ifdef __cplusplus
}
#endif
#endif
