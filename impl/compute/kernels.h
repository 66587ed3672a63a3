// The back end: a table of kernels over memory of one device. This header is all that the embedding
// layer knows of instruction sets.
//
// Promises of the numbers, kept by every implementation (DESIGN: promises of the numbers):
// - fp32; each sum in the order given here, with fused multiply-adds where written fma;
// - sums over columns: 16 lanes (column mod 16, counted from the first column of the sum), lane
// sums
//   by fma in ascending columns, then the fixed tree lane[i] += lane[i + 8], += lane[i + 4],
//   += lane[i + 2], += lane[i + 1];
// - correctly rounded division and square root.
// Hence scalar, AVX2, AVX-512 and NEON give the same bits (a NaN is a NaN in all of them; its
// payload is not promised).
//
// Kernels neither allocate nor throw, and work on the sub-range they are given, so that callers may
// cut a job among threads anywhere.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardrec::compute {

// Ids as they travelled: int32 where the table has fewer than 2^31 rows, else int64. Already
// rebased to the first row of the part, already checked.
struct Ids {
  const void* data = nullptr;
  bool is_64 = false;
};

// Pools bags: out[b] = sum over i in [offsets[b], offsets[b + 1]) of weights[i] * table[ids[i]], by
// fma(weight, element, sum) from 0 in ascending i; weights null: weight 1.
struct PooledLookup {
  const float* table = nullptr;  // [rows, width], row r at table + r * stride
  size_t stride = 0;             // elements
  int64_t width = 0;             // columns
  Ids ids;
  const float* weights = nullptr;
  const int64_t* offsets = nullptr;  // [bags + 1]
  float* out = nullptr;              // row b at out + b * out_stride
  size_t out_stride = 0;
};

// Columns [begin, end) of a part that keep one row-wise statistic together: a box.
struct ColumnRange {
  int64_t begin = 0;
  int64_t end = 0;
};

enum class OptimizerKind : uint8_t { kSgd, kRowwiseAdagrad };
enum class WeightDecay : uint8_t { kNone, kL2, kDecouple };

struct OptimizerStep {
  OptimizerKind kind = OptimizerKind::kSgd;
  WeightDecay decay_mode = WeightDecay::kNone;
  float learning_rate = 0;
  float eps = 0;
  float weight_decay = 0;
};

// One update of the touched rows of a part. Unique row u is table row rows[u]; its occurrences are
// [run[u], run[u + 1]) in canonical order. Occurrence o is a bag: its gradient row is
// gradients[bags[o]] (a pointer to width floats), its block is blocks[bags[o]], its weight is
// weights[o] (null: 1).
//
// The gradient of a row is the sum over its blocks, in ascending order, of the sum inside the
// block:
//   block = 0; for o in the block: block = fma(weights[o], gradient, block)
//   g = 0; for each block: g = g + block                         (the first block: g = block)
// then one step (formulas: model.h). For kRowwiseAdagrad, with D the statistic's number of columns:
//   e = g, or fma(weight_decay, w, g) for L2; sum = 16-lane sum of fma(e, e, .)
//   h = h + sum / D; k = lr / (sqrt(h) + eps)
//   NONE w = fma(-k, g, w); L2 w = fma(-k, g, (1 - k * lam) * w); DECOUPLE w = fma(-k, g, (1 - lr *
//   lam) * w)
// kSgd: NONE w = fma(-lr, g, w); L2 w = fma(-lr, fma(lam, w, g), w);
//   DECOUPLE w = fma(-lr, g, (1 - lr * lam) * w).
struct RowUpdate {
  float* table = nullptr;
  size_t stride = 0;
  int64_t width = 0;
  const int64_t* rows = nullptr;
  const int64_t* run = nullptr;  // [unique + 1]
  const uint32_t* bags = nullptr;
  const float* weights = nullptr;
  const float* const* gradients = nullptr;
  const uint32_t* blocks = nullptr;
  OptimizerStep step;
  // Row-wise state: state[s][row] belongs to columns[s]; `statistics` of them (0 for kSgd). They
  // tile [0, width) unless `square_sums` is given, when there is one for the whole part.
  float* const* state = nullptr;
  const ColumnRange* columns = nullptr;
  int statistics = 0;
  // Statistic over columns that other ranks own as well: square_sums[u] is the sum for the whole
  // row, and statistic_columns its number of columns. Null: the sum is taken here, over columns[s].
  const float* square_sums = nullptr;
  int64_t statistic_columns = 0;
};

// Scratch of a kernel call: scratch_bytes(width) bytes, 64-byte aligned, one per thread.
size_t row_update_scratch_bytes(int64_t width);

// The gradient sent for a bag: out[c] = clamp(gradient[c] / divisor, +-max_gradient) / length;
// max_gradient 0: no clamp; length 1 for SUM. NaN stays NaN.
struct ScaleGradient {
  float divisor = 1;
  float max_gradient = 0;
  float length = 1;
};

struct Kernels {
  const char* name;  // "scalar", "avx2", "avx512", "neon"

  void (*pooled_lookup)(const PooledLookup& job, int64_t first_bag, int64_t last_bag) noexcept;

  // square_sums[u * ranges + s] = 16-lane sum of e^2 of unique row u over ranges[s] (e as in
  // RowUpdate; state is not read).
  void (*row_square_sums)(const RowUpdate& job, const ColumnRange* ranges, int count,
                          float* square_sums, int64_t first_row, int64_t last_row,
                          std::byte* scratch) noexcept;

  void (*row_update)(const RowUpdate& job, int64_t first_row, int64_t last_row,
                     std::byte* scratch) noexcept;

  void (*scale_gradient)(const ScaleGradient& scale, const float* gradient, float* out,
                         int64_t columns) noexcept;

  void (*add)(const float* x, float* sum, int64_t columns) noexcept;  // sum += x
  void (*divide)(float* x, float divisor, int64_t columns) noexcept;  // x /= divisor
};

// The CPU kernels in use: the best instruction set of this machine, or what SHARDREC_CPU_TARGET
// names (read once). Never fails: an unknown or unavailable name means the best one, with a warning
// in the log.
const Kernels& cpu_kernels();

// All sets that this machine can run, best last. For tests and capabilities.
int cpu_kernel_count();
const Kernels& cpu_kernels_at(int index);

// Tests: use this set from now on (null: the default again). Not while other threads compute.
void force_cpu_kernels(const Kernels* kernels);

}  // namespace shardrec::compute
