// The inner loops of dense/kernels.h on a CUDA device: they enqueue, on matrices whose memory is the device's, and have
// the bits of the CPU.
//
// Each function enqueues in the stream and returns at once; what it names stays as it is until the stream has come past
// it. Matrices without rows are allowed. What is written overlaps nothing that is read, unless said otherwise. A NaN of
// the CPU is a NaN here, though not always with the same bits.
//
// Matrices of 16 bits, float16 or bfloat16, are widened when they are read, and rounded to nearest, ties to even, when
// they are written: what is between has the bits of floats. Those of a call are of one type, but where it says
// otherwise: then some are of floats.
//
// Of store_word(), and of update_elements() without a loss scale, some arguments change from step to step: a list of
// operations with them is never the list of the step before, and no graph (compute/cuda/kernels/command_list.h). A
// submit() of the stream in front of them and behind them keeps the others in lists of their own.
//
// A loss scale is memory of the device (loss_scaling.h).
//
// Throws DEVICE_ERROR. Thread rule: one thread at a time per stream. Owns nothing.
#pragma once

#include <cstdint>

#include "compute/cuda/host/stream.h"
#include "compute/kernels.h"
#include "dense/element_matrix.h"
#include "dense/kernels.h"

namespace shardrec::dense::device {

using compute::cuda::host::Stream;
using Matrix = ElementMatrix;

// Sums over the rows of a matrix, which are cut into tiles of tile_rows rows: each tile's from 0 in ascending rows, then
// the tree over tiles in pairs of neighbours (layers/weight_gradients.h, VectorSum).
struct TileSums {
  int64_t tile_rows = 0;    // at least 1
  float* parts = nullptr;   // scratch: [tiles, number of sums]
  float* target = nullptr;  // [number of sums]
  bool accumulate = false;  // the sums are added to target, else written; of no rows they are 0
  // Not null: what is added or written is divided by it, and looked at as unscale_rows() does.
  shardrec_cuda_loss_scale* loss_scale = nullptr;
};

// y = relu(y + bias) or y + bias, in each row.
void bias_activation(Stream& stream, const Matrix& y, const float* bias, bool relu);
// dz = y <= 0 ? 0 : dy. dz may be dy. y may be of floats where the others are not.
void relu_backward(Stream& stream, const Matrix& y, const Matrix& dy, const Matrix& dz);
// One sum for each column.
void column_sums(Stream& stream, const Matrix& x, const TileSums& sums);
// sum += x, of either type each.
void add_rows(Stream& stream, const Matrix& x, const Matrix& sum);
// y = x, of either type each; with a loss scale, from floats to another type, y = x * scale.
void copy_rows(Stream& stream, const Matrix& x, const Matrix& y,
               const shardrec_cuda_loss_scale* loss_scale = nullptr);
// x = value, and x *= factor, of floats.
void fill(Stream& stream, float* x, float value, int64_t count);
void scale(Stream& stream, float* x, float factor, int64_t count);

// y = x / scale, or y += x / scale, of floats. The loss scale is told where a number of x / scale is not finite. y may
// be x.
void unscale_rows(Stream& stream, const Matrix& x, const Matrix& y, bool accumulate,
                  shardrec_cuda_loss_scale* loss_scale);
// The loss scale is told where one of so many floats is not finite.
void inspect(Stream& stream, const float* x, int64_t count, shardrec_cuda_loss_scale* loss_scale);
// By what was told since the last of these two calls: adapts the scale, as LossScale::end_backward() with so many
// `steps`; skips a step, or counts it, with its bias corrections.
void end_scaled_backward(Stream& stream, shardrec_cuda_loss_scale* loss_scale, int64_t steps);
void begin_scaled_step(Stream& stream, shardrec_cuda_loss_scale* loss_scale, double beta1,
                       double beta2);

// product += bias; y = origin * product + x, with the product before it is rounded. y may be product, or of floats where
// the others are not.
void cross_forward(Stream& stream, const float* bias, const Matrix& origin, const Matrix& x,
                   const Matrix& product, const Matrix& y);
// dz = dy * origin, and where sum.data is not null sum += dy * product, or = where it starts. The sum is of floats.
void cross_backward(Stream& stream, const CrossBackwardOf<Matrix>& rows, const Matrix& sum,
                    bool starts);

// As dense/kernels.h. statistics: [rows, 2] on the device; null: not wanted. y may be x, or of floats where x is not.
void layer_norm_forward(Stream& stream, const LayerNormForward& layer, const Matrix& x,
                        const Matrix& y, float* statistics);
// dx.data null: not wanted. dx may be dy, or of floats where x and dy are not. sums: 2 * cols of them, the weights' before the biases'.
void layer_norm_backward(Stream& stream, const float* weight, const float* statistics,
                         const Matrix& x, const Matrix& dy, const Matrix& dx, const TileSums& sums);

// A word of the device.
void store_word(Stream& stream, uint32_t* to, uint32_t word);

// x and y are all rows of the batch. y may be x, or of floats where x is not. The number of the forward is the word that
// the device has at `forward` by then; mask.forward is not read.
void dropout(Stream& stream, const DropoutMask& mask, const uint32_t* forward, const Matrix& x,
             const Matrix& y);

// Floats of scratch on the device for update_elements() of so many elements: 0 but for LAMB.
int64_t update_scratch(compute::OptimizerKind kind, int64_t count) noexcept;
// A step of ElementOptimizer on one parameter, elements [0, count) of update, whose memory is the device's. update.sums
// is not read: LAMB takes its sums itself. kind is one of those that layers have. With a loss scale, the step that has
// begun there, and its bias corrections.
void update_elements(Stream& stream, const compute::ElementUpdate& update, int64_t count,
                     float* scratch, const shardrec_cuda_loss_scale* loss_scale = nullptr);

// The binary cross-entropy of dense/loss.h.
struct LossJob {
  const float* logits = nullptr;
  const float* labels = nullptr;
  float* probabilities = nullptr;  // null: not wanted, as the next two
  float* gradients = nullptr;      // of the mean over `count` samples
  double* sums = nullptr;          // of the losses of each block of kLossBlock samples
  uint64_t* wrong =
      nullptr;  // becomes ~i, if that is more, for each sample i whose label is not in 0 .. 1
  int64_t count = 0;
};
void binary_cross_entropy(Stream& stream, const LossJob& loss);
// total: of the sums of so many blocks.
void add_up_losses(Stream& stream, const double* sums, int64_t blocks, double* total);

// Samples as dense/auc.h packs them.
struct SampleJob {
  const float* probabilities = nullptr;
  const float* labels = nullptr;
  uint32_t* packed = nullptr;
  // Becomes ~(2 * position + 1) for a probability outside 0 .. 1, ~(2 * position) for a label that is neither 0 nor 1,
  // if that is more.
  uint64_t* wrong = nullptr;
  int64_t first = 0;  // position of the first one
  int64_t count = 0;
};
void pack_samples(Stream& stream, const SampleJob& samples);

// The dot interaction of each sample, of floats: dense [batch, dim], embeddings [batch, features * dim],
// out [batch, dim + (features + 1) * features / 2].
void interaction_forward(Stream& stream, const InteractionShape& shape, const Matrix& dense,
                         const Matrix& embeddings, const Matrix& out);
// Gradients of the three, of the same shapes; that of out is read, the others are written.
struct InteractionGradients {
  Matrix out;
  Matrix dense;
  Matrix embeddings;
};
void interaction_backward(Stream& stream, const InteractionShape& shape, const Matrix& dense,
                          const Matrix& embeddings, const InteractionGradients& gradients);

}  // namespace shardrec::dense::device
