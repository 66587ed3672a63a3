// The kernels in plain C++, as near to the promises in kernels.h as code can be. Slow where the
// compiler has no instruction for std::fma; every other set is compared with this one, bit by bit.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "compute/cpu/sets.h"

namespace shardrec::compute::cpu {
namespace {

template <class Id>
void pool_bags(const PooledLookup& job, int64_t first_bag, int64_t last_bag) noexcept {
  const Id* ids = static_cast<const Id*>(job.ids.data);
  for (int64_t bag = first_bag; bag < last_bag; ++bag) {
    float* out = job.out + static_cast<size_t>(bag) * job.out_stride;
    std::fill_n(out, job.width, 0.0F);
    for (int64_t i = job.offsets[bag]; i < job.offsets[bag + 1]; ++i) {
      const float* row = job.table + static_cast<size_t>(ids[i]) * job.stride;
      const float weight = job.weights == nullptr ? 1.0F : job.weights[i];
      for (int64_t c = 0; c < job.width; ++c) out[c] = std::fma(weight, row[c], out[c]);
    }
  }
}

void pooled_lookup(const PooledLookup& job, int64_t first_bag, int64_t last_bag) noexcept {
  if (job.ids.is_64) {
    pool_bags<int64_t>(job, first_bag, last_bag);
  } else {
    pool_bags<int32_t>(job, first_bag, last_bag);
  }
}

// The summed gradient of unique row u. `block` is a second row of scratch.
void sum_gradient(const RowUpdate& job, int64_t u, float* sum, float* block) noexcept {
  const int64_t end = job.run[u + 1];
  bool first = true;
  for (int64_t o = job.run[u]; o < end;) {
    const uint32_t number = job.blocks[job.bags[o]];
    std::fill_n(block, job.width, 0.0F);
    for (; o < end && job.blocks[job.bags[o]] == number; ++o) {
      const float* gradient = job.gradients[job.bags[o]];
      const float weight = job.weights == nullptr ? 1.0F : job.weights[o];
      for (int64_t c = 0; c < job.width; ++c) block[c] = std::fma(weight, gradient[c], block[c]);
    }
    for (int64_t c = 0; c < job.width; ++c) sum[c] = first ? block[c] : sum[c] + block[c];
    first = false;
  }
}

// Sum over the range's columns of e * e, where e is the gradient, with L2 decay that of the
// penalised loss.
float square_sum(const OptimizerStep& step, const float* row, const float* gradient,
                 ColumnRange range) noexcept {
  std::array<float, kLanes> lanes{};
  for (int64_t c = range.begin; c < range.end; ++c) {
    const float e = step.decay_mode == WeightDecay::kL2
                        ? std::fma(step.weight_decay, row[c], gradient[c])
                        : gradient[c];
    float& lane = lanes[static_cast<size_t>((c - range.begin) % kLanes)];
    lane = std::fma(e, e, lane);
  }
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

float* row_of(const RowUpdate& job, int64_t u) noexcept {
  return job.table + static_cast<size_t>(job.rows[u]) * job.stride;
}

void step_sgd(const OptimizerStep& step, float* row, const float* gradient,
              int64_t width) noexcept {
  const float rate = step.learning_rate;
  const float decay = step.weight_decay;
  for (int64_t c = 0; c < width; ++c) {
    switch (step.decay_mode) {
      case WeightDecay::kNone:
        row[c] = std::fma(-rate, gradient[c], row[c]);
        break;
      case WeightDecay::kL2:
        row[c] = std::fma(-rate, std::fma(decay, row[c], gradient[c]), row[c]);
        break;
      case WeightDecay::kDecouple:
        row[c] = std::fma(-rate, gradient[c], (1.0F - rate * decay) * row[c]);
        break;
    }
  }
}

void step_adagrad(const OptimizerStep& step, float rate, float* row, const float* gradient,
                  ColumnRange range) noexcept {
  for (int64_t c = range.begin; c < range.end; ++c) {
    float kept = row[c];
    if (step.decay_mode == WeightDecay::kL2) kept = (1.0F - rate * step.weight_decay) * row[c];
    if (step.decay_mode == WeightDecay::kDecouple) {
      kept = (1.0F - step.learning_rate * step.weight_decay) * row[c];
    }
    row[c] = std::fma(-rate, gradient[c], kept);
  }
}

std::span<float> scratch_rows(std::byte* scratch, int64_t width) noexcept {
  return {static_cast<float*>(static_cast<void*>(scratch)), static_cast<size_t>(2 * width)};
}

void row_update(const RowUpdate& job, int64_t first_row, int64_t last_row,
                std::byte* scratch) noexcept {
  float* gradient = scratch_rows(scratch, job.width).data();
  for (int64_t u = first_row; u < last_row; ++u) {
    float* row = row_of(job, u);
    sum_gradient(job, u, gradient, gradient + job.width);
    if (job.step.kind == OptimizerKind::kSgd) {
      step_sgd(job.step, row, gradient, job.width);
      continue;
    }
    for (int s = 0; s < job.statistics; ++s) {
      const bool given = job.square_sums != nullptr;
      const ColumnRange range = given ? ColumnRange{0, job.width} : job.columns[s];
      const float sum = given ? job.square_sums[u] : square_sum(job.step, row, gradient, range);
      const auto columns =
          static_cast<float>(given ? job.statistic_columns : range.end - range.begin);
      float& state = job.state[s][job.rows[u]];
      state = state + sum / columns;
      step_adagrad(job.step, job.step.learning_rate / (std::sqrt(state) + job.step.eps), row,
                   gradient, range);
    }
  }
}

void row_square_sums(const RowUpdate& job, const ColumnRange* ranges, int count, float* square_sums,
                     int64_t first_row, int64_t last_row, std::byte* scratch) noexcept {
  float* gradient = scratch_rows(scratch, job.width).data();
  for (int64_t u = first_row; u < last_row; ++u) {
    sum_gradient(job, u, gradient, gradient + job.width);
    for (int s = 0; s < count; ++s) {
      square_sums[u * count + s] = square_sum(job.step, row_of(job, u), gradient, ranges[s]);
    }
  }
}

void scale_gradient(const ScaleGradient& scale, const float* gradient, float* out,
                    int64_t columns) noexcept {
  const float most = scale.max_gradient;
  for (int64_t c = 0; c < columns; ++c) {
    float value = gradient[c] / scale.divisor;
    if (most != 0) value = value < -most ? -most : value > most ? most : value;
    out[c] = value / scale.length;
  }
}

void add(const float* x, float* sum, int64_t columns) noexcept {
  for (int64_t c = 0; c < columns; ++c) sum[c] += x[c];
}

void divide(float* x, float divisor, int64_t columns) noexcept {
  for (int64_t c = 0; c < columns; ++c) x[c] /= divisor;
}

}  // namespace

const Kernels& scalar_kernels() {
  static constexpr Kernels kKernels{.name = "scalar",
                                    .pooled_lookup = pooled_lookup,
                                    .row_square_sums = row_square_sums,
                                    .row_update = row_update,
                                    .scale_gradient = scale_gradient,
                                    .add = add,
                                    .divide = divide};
  return kKernels;
}

}  // namespace shardrec::compute::cpu
