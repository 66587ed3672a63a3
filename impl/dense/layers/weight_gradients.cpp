#include "dense/layers/weight_gradients.h"

#include <algorithm>

#include "compute/non_finite.h"
#include "dense/kernels.h"

namespace shardrec::dense {
namespace {

constexpr int64_t kWeightBlock = 128;  // rows of W in one task of its gradient
constexpr int64_t kChunkRows = 1024;   // samples in one task of a weight gradient, at least
constexpr int64_t kMostChunks = 16;
constexpr int64_t kMostPartials = int64_t{4}
                                  << 20;  // floats of partial weight gradients of a matrix
constexpr int64_t kAddGrain = 8192;

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

WeightShape shape_of(const WeightGradient& gradient) noexcept {
  return {.outputs = gradient.dz.cols, .inputs = gradient.x.cols};
}

}  // namespace

void Unscaling::apply(float* gradients, int64_t count) const noexcept {
  kernels().scale(gradients, factor, count);
  if (compute::first_non_finite(gradients, SHARDREC_FLOAT32, count) < 0) return;
  found_non_finite->store(true, std::memory_order_relaxed);
}

WeightCut cut_weight(const WeightShape& shape, const GradientBatch& batch) noexcept {
  const int64_t most = batch.is_whole ? 1
                                      : std::clamp(kMostPartials / (shape.inputs * shape.outputs),
                                                   int64_t{1}, kMostChunks);
  const int64_t wanted = std::clamp((batch.rows + kChunkRows - 1) / kChunkRows, int64_t{1}, most);
  WeightCut cut;
  cut.rows = std::max<int64_t>((batch.rows + wanted - 1) / wanted, 1);
  cut.chunks = (batch.rows + cut.rows - 1) / cut.rows;
  cut.block_rows = batch.is_wide ? 2 * kWeightBlock : kWeightBlock;
  cut.blocks = (shape.outputs + cut.block_rows - 1) / cut.block_rows;
  return cut;
}

int64_t partial_floats(const WeightShape& shape, const GradientBatch& batch) noexcept {
  const int64_t chunks = cut_weight(shape, batch).chunks;
  return chunks > 1 || batch.accumulate ? chunks * shape.inputs * shape.outputs : 0;
}

void WeightGradients::reserve(size_t more) { gradients_.reserve(gradients_.capacity() + more); }

void WeightGradients::start(const GradientBatch& batch) noexcept {
  batch_ = batch;
  gradients_.clear();
}

void WeightGradients::add(const WeightGradient& gradient) { gradients_.push_back(gradient); }

void WeightGradients::compute(const Gemm& gemm, core::Threads& threads) const {
  int64_t tasks = 0;
  for (const WeightGradient& gradient : gradients_) {
    const WeightCut cut = cut_weight(shape_of(gradient), batch_);
    tasks += cut.chunks * cut.blocks;
  }
  threads.parallel_for(tasks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) compute_task(gemm, task);
  });
  for (const WeightGradient& gradient : gradients_) {
    const int64_t size = gradient.dz.cols * gradient.x.cols;
    if (gradient.partials != nullptr) {
      add_up({.parts = gradient.partials,
              .count = cut_weight(shape_of(gradient), batch_).chunks,
              .size = size,
              .stride = size,
              .target = gradient.target},
             batch_, threads);
    } else if (batch_.unscaling.is_wanted()) {
      threads.parallel_for(size, kAddGrain, [&](int64_t begin, int64_t end) {
        batch_.unscaling.apply(gradient.target + begin, end - begin);
      });
    }
  }
}

// Tasks are numbered over all gradients.
void WeightGradients::compute_task(const Gemm& gemm, int64_t task) const noexcept {
  const WeightGradient* gradient = gradients_.data();
  WeightCut cut = cut_weight(shape_of(*gradient), batch_);
  while (task >= cut.chunks * cut.blocks) {
    task -= cut.chunks * cut.blocks;
    cut = cut_weight(shape_of(*++gradient), batch_);
  }
  const core::Matrix dz = gradient->dz.floats(), x = gradient->x.floats();
  const int64_t chunk = task / cut.blocks;
  const int64_t first = task % cut.blocks * cut.block_rows;
  const int64_t row = chunk * cut.rows;
  float* target = gradient->partials == nullptr ? gradient->target
                                                : gradient->partials + chunk * x.cols * dz.cols;
  const shardrec_gemm job{.m = std::min(cut.block_rows, dz.cols - first),
                          .n = x.cols,
                          .k = std::min(cut.rows, batch_.rows - row),
                          .a = dz.row(row) + first,
                          .b = x.row(row),
                          .c = target + first * x.cols,
                          .lda = dz.stride,
                          .ldb = x.stride,
                          .ldc = x.cols,
                          .beta = 0,
                          .transpose_a = 1,
                          .transpose_b = 0};
  gemm.sgemm(&job);
}

void add_up(const VectorSum& sum, const GradientBatch& batch, core::Threads& threads) {
  threads.parallel_for(sum.size, kAddGrain, [&](int64_t begin, int64_t end) {
    add_tree(sum.parts, sum.count, sum.stride, begin, end);
    if (batch.unscaling.is_wanted()) batch.unscaling.apply(sum.parts + begin, end - begin);
    if (batch.accumulate) {
      kernels().add(sum.parts + begin, sum.target + begin, end - begin);
    } else {
      std::copy(sum.parts + begin, sum.parts + end, sum.target + begin);
    }
  });
}

}  // namespace shardrec::dense
