// Gradients of rows that are kept over lookups (compute::KeptGradients). A merge of two ascending lists
// needs no walk: each row's place is its own number and that of the rows of the other list below it.
#pragma once

#include "compute/cuda/jobs/gradients.h"
#include "compute/cuda/kernels/tiles.h"

namespace shardrec::compute::cuda {

// new_before: 1 for each row that is not kept yet, else 0; 0 behind the last.
SHARDREC_KERNEL(8) mark_new_rows(shardrec_cuda_kept_addition job) {
  const int64_t i = grid_thread_index();
  if (i > job.count) return;
  if (i == job.count) {
    job.new_before[i] = 0;
    return;
  }
  const int64_t row = job.rows[i];
  const int64_t place = count_below(job.kept.rows, job.kept.count, row);
  const bool known = place < job.kept.count && job.kept.rows[place] == row;
  job.places[i] = static_cast<uint32_t>(place);
  job.new_before[i] = known ? 0 : 1;
}

// A thread for each kept row and each added one, which writes its place in the merged list.
SHARDREC_KERNEL(8) merge_kept_rows(shardrec_cuda_kept_addition job) {
  const int64_t number = grid_thread_index();
  const shardrec_cuda_kept_rows& kept = job.kept;
  const shardrec_cuda_kept_rows& merged = job.merged;
  if (number < kept.count) {
    const int64_t row = kept.rows[number];
    const int64_t place = number + job.new_before[count_below(job.rows, job.count, row)];
    merged.rows[place] = row;
    merged.entries[place] = kept.entries[number];
    merged.gradients[number] = kept.gradients[number];
    return;
  }
  const int64_t i = number - kept.count;
  if (i >= job.count) return;
  const uint32_t new_rows = job.new_before[i];
  const uint32_t kept_below = job.places[i];
  if (job.new_before[i + 1] == new_rows) {
    job.places[i] = kept.entries[kept_below];
    return;
  }
  const int64_t place = int64_t{kept_below} + new_rows;
  const int64_t entry = kept.count + new_rows;
  merged.rows[place] = job.rows[i];
  merged.entries[place] = static_cast<uint32_t>(entry);
  merged.gradients[entry] = job.new_gradients + new_rows * job.width;
  job.places[i] = static_cast<uint32_t>(entry);
}

SHARDREC_DEVICE float sum_of(float a, float b) { return __fadd_rn(a, b); }
SHARDREC_DEVICE float4 sum_of(const float4& a, const float4& b) {
  return make_float4(__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z),
                     __fadd_rn(a.w, b.w));
}

// A group of lanes for each added row: a new one is copied into its entry, others are added.
template <class Number>
SHARDREC_KERNEL(8)
add_kept_gradients(shardrec_cuda_kept_addition job) {
  const int64_t number = grid_thread_index();
  const int64_t i = number >> job.lane_bits;
  if (i >= job.count) return;
  const auto width = static_cast<int>(job.width * int64_t{sizeof(float)} / int64_t{sizeof(Number)});
  const auto* const from =
      static_cast<const Number*>(static_cast<const void*>(job.gradients + i * job.width));
  const int64_t entry = job.places[i];
  auto* const to = static_cast<Number*>(static_cast<void*>(job.merged.gradients[entry]));
  const bool known = entry < job.kept.count;
  const int lanes = 1 << job.lane_bits;
  for (int c = static_cast<int>(number) & (lanes - 1); c < width; c += lanes) {
    const Number gradient = from[c];
    to[c] = known ? sum_of(to[c], gradient) : gradient;
  }
}

}  // namespace shardrec::compute::cuda
