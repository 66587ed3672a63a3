// Steps of optimizers on numbers that are no rows of a table (compute::ElementUpdate): a thread for four neighbouring
// elements, where all lists are at multiples of 16 bytes, or for one. LAMB has three passes: its sums, of each block of
// elements; the totals, in float64; the step.
#pragma once

#include "compute/cuda/jobs/layers.h"
#include "compute/cuda/jobs/scaling.h"
#include "compute/cuda/kernels/lane_columns.h"
#include "compute/cuda/kernels/rows/row_formulas.h"

namespace shardrec::compute::cuda {

// Calls body(formula, settings) for the decay of the job.
template <template <WeightDecay> class OfDecay, class Body>
SHARDREC_DEVICE void with_decay(const shardrec_cuda_optimizer_step& step, const Body& body) {
  constexpr OptimizerKind kKind = OfDecay<WeightDecay::kNone>::kKind;
  switch (static_cast<WeightDecay>(step.decay)) {
    case WeightDecay::kNone:
      return body(OfDecay<WeightDecay::kNone>{}, step_of(kKind, WeightDecay::kNone, step));
    case WeightDecay::kL2:
      return body(OfDecay<WeightDecay::kL2>{}, step_of(kKind, WeightDecay::kL2, step));
    case WeightDecay::kDecouple:
      return body(OfDecay<WeightDecay::kDecouple>{}, step_of(kKind, WeightDecay::kDecouple, step));
  }
}

// Is the step skipped for what was found in its gradients?
SHARDREC_DEVICE bool is_skipped(const shardrec_cuda_element_update& job) {
  return job.loss_scale != nullptr && global(job.loss_scale)->skips != 0;
}

// The settings of the step, with the bias corrections that the device knows.
SHARDREC_DEVICE shardrec_cuda_optimizer_step settings_of(const shardrec_cuda_element_update& job) {
  shardrec_cuda_optimizer_step step = job.step;
  if (job.loss_scale == nullptr) return step;
  step.bias1 = global(job.loss_scale)->bias1;
  step.bias2 = global(job.loss_scale)->bias2;
  return step;
}

SHARDREC_DEVICE float clamped_gradient(const shardrec_cuda_element_update& job, float gradient) {
  return job.max_gradient > 0 ? math::clamped(gradient, job.max_gradient) : gradient;
}

template <template <WeightDecay> class OfDecay, int kColumns>
SHARDREC_KERNEL(4)
step_each_element(shardrec_cuda_element_update job) {
  constexpr int kMatrices = state_needs(OfDecay<WeightDecay::kNone>::kKind).matrices;
  using Floats = LaneFloats<kColumns>;
  const int64_t i = grid_thread_index() * kColumns;
  if (i >= job.count || is_skipped(job)) return;
  float w[kColumns], g[kColumns], m[kColumns] = {}, v[kColumns] = {};
  Floats::load(job.weights + i, w);
  Floats::load(job.gradients + i, g);
  if constexpr (kMatrices > 0) Floats::load(job.matrices[0] + i, m);
  if constexpr (kMatrices > 1) Floats::load(job.matrices[1] + i, v);
  with_decay<OfDecay>(settings_of(job), [&](auto formula, const OptimizerStep& step) {
    const math::Constants k(step);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      math::Column x{w[c], clamped_gradient(job, g[c]), m[c], v[c]};
      decltype(formula)::step(k, math::Rates{}, x);
      w[c] = x.w;
      m[c] = x.m;
      v[c] = x.v;
    }
  });
  if constexpr (kMatrices > 0) Floats::store(job.matrices[0] + i, m);
  if constexpr (kMatrices > 1) Floats::store(job.matrices[1] + i, v);
  Floats::store(job.weights + i, w);
}

// Elements of a block of LAMB that are in shared memory at one time. The gap puts weights and directions, which are read
// at the same time, into different banks.
inline constexpr int kLambElements = 4;  // of a thread
inline constexpr int kLambTile = kLambElements * kThreads;
struct LambTile {
  float weights[kLambTile + kVirtualLanes];
  float directions[kLambTile];
};

// Moves the moments of the elements of a block, and takes the sums: sixteen lanes add the squares of weights, sixteen
// those of directions.
SHARDREC_KERNEL(4) sum_lamb_blocks(shardrec_cuda_element_update job) {
  LambTile& tile = shared<LambTile>();
  if (is_skipped(job)) return;
  const auto thread = static_cast<int>(threadIdx.x);
  const int64_t begin = int64_t{blockIdx.x} * SHARDREC_CUDA_ELEMENT_BLOCK;
  const int64_t block_end = begin + SHARDREC_CUDA_ELEMENT_BLOCK;
  const int64_t end = block_end < job.count ? block_end : job.count;
  const float* const summed = thread < kVirtualLanes ? tile.weights : tile.directions;
  float sum = 0;
  with_decay<math::Lamb>(settings_of(job), [&](auto formula, const OptimizerStep& step) {
    const math::Constants k(step);
    for (int64_t first = begin; first < end; first += kLambTile) {
      math::Column x[kLambElements] = {};
#pragma unroll
      for (int e = 0; e < kLambElements; ++e) {
        const int64_t i = first + thread + e * kThreads;
        if (i >= end) continue;
        x[e] = {global(job.weights)[i], global(job.gradients)[i], global(job.matrices[0])[i],
                global(job.matrices[1])[i]};
      }
#pragma unroll
      for (int e = 0; e < kLambElements; ++e) {
        const int at = thread + e * kThreads;
        if (first + at >= end) continue;
        x[e].g = clamped_gradient(job, x[e].g);
        decltype(formula)::move(k, x[e]);
        global(job.matrices[0])[first + at] = x[e].m;
        global(job.matrices[1])[first + at] = x[e].v;
        tile.weights[at] = x[e].w;
        tile.directions[at] = x[e].g;
      }
      __syncthreads();
      if (thread < kWarp) {
        const int count = end - first < kLambTile ? static_cast<int>(end - first) : kLambTile;
        for (int at = thread % kVirtualLanes; at < count; at += kVirtualLanes) {
          math::add_square(summed[at], sum);
        }
      }
      __syncthreads();
    }
  });
  if (thread >= kWarp) return;
#pragma unroll
  for (int distance = kVirtualLanes / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(kAllLanes, sum, distance);
  }
  if (thread % kVirtualLanes == 0) {
    global(job.sums)[2 + 2 * int64_t{blockIdx.x} + thread / kVirtualLanes] = sum;
  }
}

// One thread for each of the two totals.
SHARDREC_KERNEL(1) total_lamb_sums(const float* sums, int64_t blocks, float* totals) {
  const auto which = static_cast<int>(threadIdx.x);
  if (which >= 2) return;
  double total = 0;
#pragma unroll 8
  for (int64_t block = 0; block < blocks; ++block) {
    total += static_cast<double>(global(sums)[2 * block + which]);
  }
  global(totals)[which] = static_cast<float>(total);
}

template <int kColumns>
SHARDREC_KERNEL(4)
step_lamb(shardrec_cuda_element_update job) {
  using Floats = LaneFloats<kColumns>;
  const int64_t i = grid_thread_index() * kColumns;
  if (i >= job.count || is_skipped(job)) return;
  const float sums[2] = {global(job.sums)[0], global(job.sums)[1]};
  float w[kColumns], m[kColumns], v[kColumns];
  Floats::load(job.weights + i, w);
  Floats::load(job.matrices[0] + i, m);
  Floats::load(job.matrices[1] + i, v);
  with_decay<math::Lamb>(settings_of(job), [&](auto formula, const OptimizerStep& step) {
    const math::Constants k(step);
    const math::Rates rates = decltype(formula)::rates(step, nullptr, sums, 0);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      math::Column x{w[c], 0, m[c], v[c]};
      x.g = decltype(formula)::direction(k, x);
      decltype(formula)::step(k, rates, x);
      w[c] = x.w;
    }
  });
  Floats::store(job.weights + i, w);
}

}  // namespace shardrec::compute::cuda
