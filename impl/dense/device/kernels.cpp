#include "dense/device/kernels.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "compute/cuda/host/optimizer_steps.h"
#include "core/error.h"
#include "dense/extents.h"
#include "dense/loss.h"

static_assert(shardrec::dense::kBlockElements == SHARDREC_CUDA_ELEMENT_BLOCK);
static_assert(static_cast<int>(shardrec::compute::Element::kFloat16) == SHARDREC_CUDA_FLOAT16);
static_assert(static_cast<int>(shardrec::compute::Element::kBfloat16) == SHARDREC_CUDA_BFLOAT16);
static_assert(shardrec::dense::kLossBlock == SHARDREC_CUDA_LOSS_BLOCK);

namespace shardrec::dense::device {
namespace {

// Enqueues an operation of the plug-in; `what` says in a sentence what it would do.
template <class Job>
void enqueue(Stream& stream,
             shardrec_cuda_error (*operation)(shardrec_cuda_stream* stream, const Job* job),
             const Job& job, const char* what) {
  compute::cuda::host::require(operation(stream.handle(), &job), what, " on device ",
                               stream.device());
}

const shardrec_cuda_table& operations() { return compute::cuda::host::table(); }

shardrec_cuda_matrix on_device(const Matrix& matrix) {
  return {.data = matrix.data,
          .rows = matrix.rows,
          .cols = matrix.cols,
          .stride = matrix.stride,
          .element = static_cast<int32_t>(matrix.element)};
}

core::Matrix one_row(float* x, int64_t count) {
  return {.data = x, .rows = 1, .cols = count, .stride = count};
}

// tiles: whose statistics are null where one sum for each column is wanted, else two.
void add_tiles(Stream& stream, const shardrec_cuda_tile_sums& tiles, const TileSums& sums) {
  const int64_t count = tiles.statistics == nullptr ? tiles.x.cols : 2 * tiles.x.cols;
  if (tiles.x.rows == 0) {
    if (!sums.accumulate) fill(stream, sums.target, 0, count);
    return;
  }
  enqueue(stream, operations().sum_tiles, tiles, "sum rows");
  const shardrec_cuda_tree tree{.parts = sums.parts,
                                .tiles = (tiles.x.rows + sums.tile_rows - 1) / sums.tile_rows,
                                .count = count,
                                .target = sums.target,
                                .accumulate = sums.accumulate ? 1 : 0,
                                .loss_scale = sums.loss_scale};
  enqueue(stream, operations().add_tree, tree, "sum rows");
}

}  // namespace

void bias_activation(Stream& stream, const Matrix& y, const float* bias, bool relu) {
  const shardrec_cuda_bias job{.y = on_device(y), .bias = bias, .relu = relu ? 1 : 0};
  enqueue(stream, operations().add_bias, job, "add a bias");
}

void relu_backward(Stream& stream, const Matrix& y, const Matrix& dy, const Matrix& dz) {
  const shardrec_cuda_relu_gradient job{
      .y = on_device(y), .dy = on_device(dy), .dz = on_device(dz)};
  enqueue(stream, operations().mask_gradients, job, "mask gradients");
}

void column_sums(Stream& stream, const Matrix& x, const TileSums& sums) {
  add_tiles(stream, {.x = on_device(x), .tile_rows = sums.tile_rows, .parts = sums.parts}, sums);
}

void add_rows(Stream& stream, const Matrix& x, const Matrix& sum) {
  const shardrec_cuda_addition job{.x = on_device(x), .sum = on_device(sum)};
  enqueue(stream, operations().add_matrix, job, "add rows");
}

void copy_rows(Stream& stream, const Matrix& x, const Matrix& y,
               const shardrec_cuda_loss_scale* loss_scale) {
  if (x.element != y.element) {
    const shardrec_cuda_conversion job{
        .x = on_device(x), .y = on_device(y), .loss_scale = loss_scale};
    enqueue(stream, operations().convert_matrix, job, "convert rows");
    return;
  }
  const auto bytes = static_cast<int64_t>(compute::element_bytes(x.element));
  const shardrec_cuda_row_copy job{.from = x.data,
                                   .to = y.data,
                                   .from_stride = x.stride * bytes,
                                   .to_stride = y.stride * bytes,
                                   .rows = x.rows,
                                   .row_bytes = x.cols * bytes};
  enqueue(stream, operations().copy_rows, job, "copy rows");
}

void fill(Stream& stream, float* x, float value, int64_t count) {
  const shardrec_cuda_filling job{.x = on_device(one_row(x, count)), .number = value};
  enqueue(stream, operations().fill_numbers, job, "fill numbers");
}

void scale(Stream& stream, float* x, float factor, int64_t count) {
  const shardrec_cuda_filling job{
      .x = on_device(one_row(x, count)), .number = factor, .multiplies = 1};
  enqueue(stream, operations().fill_numbers, job, "scale numbers");
}

void unscale_rows(Stream& stream, const Matrix& x, const Matrix& y, bool accumulate,
                  shardrec_cuda_loss_scale* loss_scale) {
  const shardrec_cuda_unscaling job{.x = on_device(x),
                                    .y = on_device(y),
                                    .accumulate = accumulate ? 1 : 0,
                                    .loss_scale = loss_scale};
  enqueue(stream, operations().unscale_matrix, job, "divide gradients by the loss scale");
}

void inspect(Stream& stream, const float* x, int64_t count, shardrec_cuda_loss_scale* loss_scale) {
  const shardrec_cuda_inspection job{.numbers = x, .count = count, .loss_scale = loss_scale};
  enqueue(stream, operations().inspect_numbers, job, "look through gradients");
}

void end_scaled_backward(Stream& stream, shardrec_cuda_loss_scale* loss_scale, int64_t steps) {
  const shardrec_cuda_scaled_backward job{.loss_scale = loss_scale, .steps = steps};
  enqueue(stream, operations().end_scaled_backward, job, "adapt the loss scale");
}

void begin_scaled_step(Stream& stream, shardrec_cuda_loss_scale* loss_scale, double beta1,
                       double beta2) {
  const shardrec_cuda_scaled_step job{.loss_scale = loss_scale, .beta1 = beta1, .beta2 = beta2};
  enqueue(stream, operations().begin_scaled_step, job, "begin a step");
}

void cross_forward(Stream& stream, const float* bias, const Matrix& origin, const Matrix& x,
                   const Matrix& product, const Matrix& y) {
  const shardrec_cuda_cross job{.bias = bias,
                                .origin = on_device(origin),
                                .x = on_device(x),
                                .product = on_device(product),
                                .y = on_device(y)};
  enqueue(stream, operations().cross_rows, job, "compute a cross layer");
}

void cross_backward(Stream& stream, const CrossBackwardOf<Matrix>& rows, const Matrix& sum,
                    bool starts) {
  const shardrec_cuda_cross_gradient job{.origin = on_device(rows.origin),
                                         .product = on_device(rows.product),
                                         .dy = on_device(rows.dy),
                                         .dz = on_device(rows.dz),
                                         .sum = on_device(sum),
                                         .starts = starts ? 1 : 0};
  enqueue(stream, operations().cross_gradients, job, "compute gradients of a cross layer");
}

void layer_norm_forward(Stream& stream, const LayerNormForward& layer, const Matrix& x,
                        const Matrix& y, float* statistics) {
  const shardrec_cuda_layer_norm job{.weight = layer.weight,
                                     .bias = layer.bias,
                                     .epsilon = layer.epsilon,
                                     .x = on_device(x),
                                     .y = on_device(y),
                                     .statistics = statistics};
  enqueue(stream, operations().normalize_rows, job, "normalize rows");
}

// dx may be dy: the sums read dy before it is written.
void layer_norm_backward(Stream& stream, const float* weight, const float* statistics,
                         const Matrix& x, const Matrix& dy, const Matrix& dx,
                         const TileSums& sums) {
  add_tiles(stream,
            {.x = on_device(x),
             .statistics = statistics,
             .dy = on_device(dy),
             .tile_rows = sums.tile_rows,
             .parts = sums.parts},
            sums);
  if (dx.data == nullptr) return;
  const shardrec_cuda_layer_norm_gradient job{.weight = weight,
                                              .statistics = statistics,
                                              .x = on_device(x),
                                              .dy = on_device(dy),
                                              .dx = on_device(dx)};
  enqueue(stream, operations().normalize_gradients, job, "compute gradients of layer norm");
}

// A float is stored as it is, whatever its bits are.
void store_word(Stream& stream, uint32_t* to, uint32_t word) {
  const shardrec_cuda_filling job{
      .x = {.data = to, .rows = 1, .cols = 1, .stride = 1, .element = SHARDREC_CUDA_FLOAT32},
      .number = std::bit_cast<float>(word)};
  enqueue(stream, operations().fill_numbers, job, "store a word");
}

void dropout(Stream& stream, const DropoutMask& mask, const uint32_t* forward, const Matrix& x,
             const Matrix& y) {
  const shardrec_cuda_dropout job{.seed = mask.seed,
                                  .forward = forward,
                                  .layer = mask.layer,
                                  .threshold = mask.threshold,
                                  .factor = mask.factor,
                                  .x = on_device(x),
                                  .y = on_device(y)};
  enqueue(stream, operations().drop_elements, job, "drop elements");
}

int64_t update_scratch(compute::OptimizerKind kind, int64_t count) noexcept {
  return kind == compute::OptimizerKind::kLamb ? 2 + 2 * Extents::blocks_of(count) : 0;
}

void update_elements(Stream& stream, const compute::ElementUpdate& update, int64_t count,
                     float* scratch, const shardrec_cuda_loss_scale* loss_scale) {
  shardrec_cuda_element_update job{.weights = update.weights,
                                   .gradients = update.gradients,
                                   .max_gradient = update.max_gradient,
                                   .kind = static_cast<int32_t>(update.step.kind),
                                   .step = compute::cuda::host::on_device(update.step),
                                   .count = count,
                                   .sums = scratch,
                                   .loss_scale = loss_scale};
  std::copy_n(update.matrices, std::size(update.matrices), job.matrices);
  enqueue(stream, operations().update_elements, job, "update parameters");
}

void binary_cross_entropy(Stream& stream, const LossJob& loss) {
  const shardrec_cuda_loss job{.logits = loss.logits,
                               .labels = loss.labels,
                               .probabilities = loss.probabilities,
                               .gradients = loss.gradients,
                               .sums = loss.sums,
                               .wrong = loss.wrong,
                               .count = loss.count};
  enqueue(stream, operations().compute_losses, job, "compute a loss");
}

void add_up_losses(Stream& stream, const double* sums, int64_t blocks, double* total) {
  const shardrec_cuda_loss_total job{.sums = sums, .count = blocks, .total = total};
  enqueue(stream, operations().total_losses, job, "add up a loss");
}

void pack_samples(Stream& stream, const SampleJob& samples) {
  const shardrec_cuda_samples job{.probabilities = samples.probabilities,
                                  .labels = samples.labels,
                                  .packed = samples.packed,
                                  .wrong = samples.wrong,
                                  .first = samples.first,
                                  .count = samples.count};
  enqueue(stream, operations().pack_samples, job, "pack samples");
}

void interaction_forward(Stream& stream, const InteractionShape& shape, const Matrix& dense,
                         const Matrix& embeddings, const Matrix& out) {
  const shardrec_cuda_interaction job{.features = shape.features,
                                      .dim = shape.dim,
                                      .dense = on_device(dense),
                                      .embeddings = on_device(embeddings),
                                      .out = on_device(out)};
  enqueue(stream, operations().interact, job, "compute an interaction");
}

void interaction_backward(Stream& stream, const InteractionShape& shape, const Matrix& dense,
                          const Matrix& embeddings, const InteractionGradients& gradients) {
  const shardrec_cuda_interaction job{.features = shape.features,
                                      .dim = shape.dim,
                                      .dense = on_device(dense),
                                      .embeddings = on_device(embeddings),
                                      .out = on_device(gradients.out),
                                      .dense_gradient = on_device(gradients.dense),
                                      .embedding_gradient = on_device(gradients.embeddings)};
  enqueue(stream, operations().interaction_gradients, job, "compute gradients of an interaction");
}

}  // namespace shardrec::dense::device
