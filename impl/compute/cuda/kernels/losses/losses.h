// The binary cross-entropy of logits: a thread for each sample, a block of threads for each block of samples, whose
// losses it adds up.
#pragma once

#include "compute/cuda/jobs/losses.h"
#include "compute/cuda/kernels/device.h"
#include "compute/cuda/kernels/losses/wrong_numbers.h"
#include "compute/math/logistic.h"

namespace shardrec::compute::cuda {

static_assert(SHARDREC_CUDA_LOSS_BLOCK == kThreads);

struct LossTerms {
  double terms[kThreads];
};

// The sum of the terms of all threads, a tree: term i + kThreads / 2 is added to term i, then + kThreads / 4, and so on
// to + 1. All threads call it; the first one has the sum.
SHARDREC_DEVICE double sum_of_terms(LossTerms& room, double term) {
  const auto thread = static_cast<int>(threadIdx.x);
  room.terms[thread] = term;
  __syncthreads();
#pragma unroll
  for (int distance = kThreads / 2; distance >= kWarp; distance /= 2) {
    if (thread < distance) room.terms[thread] += room.terms[thread + distance];
    __syncthreads();
  }
  double sum = room.terms[lane_index()];
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(kAllLanes, sum, distance);
  }
  return sum;
}

SHARDREC_KERNEL(4) compute_sample_losses(shardrec_cuda_loss job) {
  const int64_t i = grid_thread_index();
  double term = 0;
  if (i < job.count) {
    const double z = global(job.logits)[i];
    const double y = global(job.labels)[i];
    if (!(y >= 0 && y <= 1)) tell_wrong(job.wrong, i);
    const math::CrossEntropy sample = math::cross_entropy_of(z, y);
    if (job.probabilities != nullptr) {
      global(job.probabilities)[i] = static_cast<float>(sample.probability);
    }
    if (job.gradients != nullptr) {
      global(job.gradients)[i] =
          static_cast<float>((sample.probability - y) / static_cast<double>(job.count));
    }
    term = sample.loss;
  }
  if (job.sums == nullptr) return;
  const double sum = sum_of_terms(shared<LossTerms>(), term);
  if (threadIdx.x == 0) global(job.sums)[blockIdx.x] = sum;
}

// One block. Thread t adds up the sums t, t + kThreads, and so on.
SHARDREC_KERNEL(1) total_block_losses(shardrec_cuda_loss_total job) {
  double lane = 0;
#pragma unroll 8
  for (int64_t block = threadIdx.x; block < job.count; block += kThreads) {
    lane += global(job.sums)[block];
  }
  const double total = sum_of_terms(shared<LossTerms>(), lane);
  if (threadIdx.x == 0) *global(job.total) = total;
}

}  // namespace shardrec::compute::cuda
