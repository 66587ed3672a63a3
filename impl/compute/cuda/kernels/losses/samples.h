// Predictions and labels, packed as metrics keep them: a thread for each sample.
#pragma once

#include "compute/cuda/jobs/losses.h"
#include "compute/cuda/kernels/device.h"
#include "compute/cuda/kernels/losses/wrong_numbers.h"
#include "compute/math/packed_sample.h"

namespace shardrec::compute::cuda {

SHARDREC_KERNEL(8) pack_each_sample(shardrec_cuda_samples job) {
  const int64_t i = grid_thread_index();
  if (i >= job.count) return;
  const float probability = global(job.probabilities)[i];
  const float label = global(job.labels)[i];
  global(job.packed)[i] = math::packed_sample(probability, label == 1);
  const bool is_label_known = label == 0 || label == 1;
  if (is_label_known && probability >= 0 && probability <= 1) return;
  const int which = is_label_known ? SHARDREC_CUDA_WRONG_PROBABILITY : SHARDREC_CUDA_WRONG_LABEL;
  tell_wrong(job.wrong, 2 * (job.first + i) + which);
}

}  // namespace shardrec::compute::cuda
