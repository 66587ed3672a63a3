// The kernels that the probe times: sums of bags of rows, and updates shaped as row-wise AdaGrad's,
// with every prefetch and store as a template. They reach for the memory's limit and compute just
// enough that nothing can be left out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "compute/profile/memory_profile.h"

namespace shardrec::compute::probe {

// Of the rows, by index in the tables of functions below.
inline constexpr std::array<int64_t, 5> kProbeRowBytes = {64, 128, 256, 512, 1024};
inline constexpr size_t kProbeRowSizes = kProbeRowBytes.size();

// Rows and outputs are aligned to their size.
struct ProbeGather {
  const float* table;
  const int64_t* ids;  // bags * bag_length
  int64_t bags;
  int64_t bag_length;
  float* out;        // bags rows
  int64_t distance;  // ids ahead, none behind the last
};

struct ProbeUpdate {
  float* table;
  float* state;         // one float per row of the table
  const int64_t* rows;  // distinct, ascending
  int64_t count;
  const float* gradients;  // kProbeGradients rows, used in turn
  int64_t distance;
};
inline constexpr int64_t kProbeGradients = 16;  // they stay in the first-level cache

// state += mean(g^2); row -= 0.01 / (sqrt(state) + 1e-8) * g
struct ProbeKernels {
  using Gather = void (*)(const ProbeGather&) noexcept;
  using Update = void (*)(const ProbeUpdate&) noexcept;

  // [row size][hint][streaming stores]
  std::array<std::array<std::array<Gather, 2>, kPrefetchHints>, kProbeRowSizes> gather;
  // [row size][hint]
  std::array<std::array<Update, kPrefetchHints>, kProbeRowSizes> update;
};

// Of the instruction set that the library's kernels use.
const ProbeKernels& probe_kernels();

}  // namespace shardrec::compute::probe
