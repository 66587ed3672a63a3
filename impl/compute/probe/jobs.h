// Jobs for the library's own kernels, as the probe times them to choose their prefetch: sums of
// bags, and steps of row-wise AdaGrad with one gradient per row, in random order as in a batch.
//
// Thread rule: one thread makes jobs, those of its team run them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compute/kernels.h"
#include "compute/profile/memory_profile.h"
#include "core/memory.h"

namespace shardrec::compute::probe {

class ProbeJobs {
 public:
  // For jobs of at most so many rows, run by so many threads.
  ProbeJobs(int64_t most_rows, int64_t threads);

  // Sums of bags of rows, side by side. What is given is referred to.
  PooledLookup lookup(const float* table, int64_t row_bytes, const int64_t* ids, int64_t bag_length,
                      float* out, const Prefetch& way);

  // Of `rows`. Valid until the next one is made; what is given is referred to.
  RowUpdate update(float* table, float* state, int64_t row_bytes, const int64_t* rows,
                   const Prefetch& way);

  std::byte* scratch(int64_t thread);

 private:
  core::Scratch number_memory_;
  core::Scratch offset_memory_;
  core::Scratch bag_memory_;
  core::Scratch block_memory_;
  core::Scratch gradient_memory_;
  core::Scratch scratch_;
  std::span<int64_t> numbers_;  // 0, 1, ...
  std::span<int64_t> offsets_;  // of bags of several rows
  std::span<uint32_t> bags_;    // random
  std::span<uint32_t> blocks_;  // all 0
  std::span<float> gradients_;
  std::vector<const float*> rows_;  // of the gradients
  float* state_ = nullptr;
  ColumnRange columns_;
};

}  // namespace shardrec::compute::probe
