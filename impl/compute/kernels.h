// The back end: a table of kernels over memory of one device. This header is all that the embedding
// layer knows of instruction sets.
//
// Promises of the numbers, kept by every implementation (DESIGN: promises of the numbers):
// - fp32; each sum in the order given here, with fused multiply-adds where written fma;
// - sums over columns: 16 lanes (column mod 16, counted from the first column of the sum); the sum
//   of a lane by fma from 0 in ascending columns, then the fixed tree
//   lane[i] += lane[i + 8], lane[i] += lane[i + 4], lane[i] += lane[i + 2],
//   lane[i] += lane[i + 1];
// - correctly rounded division and square root; 16-bit elements as element.h says.
// Hence scalar, AVX2, AVX-512 and NEON give the same bits (a NaN is a NaN in all of them; its
// payload is not promised where it is 32 bits wide).
//
// Kernels neither allocate nor throw, and work on the sub-range they are given, so that callers may
// cut a job among threads anywhere.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compute/element.h"
#include "compute/optimizer.h"

namespace shardrec::compute {

struct Prefetch;

inline constexpr int64_t kLanes = 16;  // virtual lanes of a sum over columns

// Ids as they travelled: int32 where the table has fewer than 2^31 rows, else int64. Already
// rebased to the first row of the part, already checked.
struct Ids {
  const void* data = nullptr;
  bool is_64 = false;
};

// Pools bags: out[b] = sum over i in [offsets[b], offsets[b + 1]) of weights[i] * table[ids[i]], by
// fma(weight, element, sum) from 0 in ascending i; weights null: weight 1. Sums of a table of 16
// bits are fp32 like those of any other. Then, where asked for, the sum of a bag that is not empty
// is divided by its number of ids, and rounded to nearest.
//
// Of a coded table, row r stands at byte r * stride: width codes of 8 bits, then a RowScale, at any
// address. There out[b] = sum over i of fma(weights[i] * scale, code, sum) from 0, plus
// sum over i of fma(weights[i], offset, sum) from 0, before it is divided.
struct PooledLookup {
  const void* table = nullptr;  // [rows, width], row r at element r * stride
  Element element = Element::kFloat32;
  bool coded = false;  // element is not read
  size_t stride = 0;   // elements; of a coded table bytes
  int64_t width = 0;   // columns
  Ids ids;
  const float* weights = nullptr;
  const int64_t* offsets = nullptr;  // [bags + 1]
  void* out = nullptr;               // row b at element b * out_stride
  Element out_element = Element::kFloat32;
  size_t out_stride = 0;  // elements
  bool mean = false;
  // Written past the caches: for outputs that these would not hold until they are read.
  // out, its rows and their width are multiples of 64 bytes then.
  bool streaming = false;
  const Prefetch* prefetch = nullptr;  // of rows of the table; null: as this machine's profile says
};

// Columns [begin, end) of a part over which sums are taken together.
struct ColumnRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// Columns [offset, offset + count) of a part are columns [column, column + count) of its table.
struct ColumnMap {
  int64_t offset = 0;
  int64_t column = 0;
  int64_t count = 0;
};

// One update of the touched rows of a part. Unique row u is row rows[u] of the part; its
// occurrences are [run[u], run[u + 1]) in canonical order. Occurrence o is a bag: its gradient row
// is gradients[bags[o]] (a pointer to width floats), its block is blocks[bags[o]], its weight is
// weights[o] (null: 1).
//
// The gradient of a row is the sum over its blocks, in ascending order, of the sum inside the
// block:
//   block = block_start; for o in the block: block = fma(weights[o], gradient * scale, block)
//   g = 0; for each block: g = g + block                         (the first block: g = block)
// then one step (formulas: optimizer.h).
struct RowUpdate {
  void* table = nullptr;
  Element element = Element::kFloat32;
  size_t stride = 0;  // elements
  int64_t width = 0;
  const int64_t* rows = nullptr;
  const int64_t* run = nullptr;  // [unique + 1]
  const uint32_t* bags = nullptr;
  const float* weights = nullptr;
  const float* const* gradients = nullptr;
  const uint32_t* blocks = nullptr;
  float gradient_scale = 1;  // a power of two
  // What the sum of each block starts from: +0, or kUnchanged where the occurrences are sums
  // already, which then keep the sign of their zeros.
  float block_start = 0;
  static constexpr float kUnchanged = -0.0F;  // x + -0 is x, bit for bit, for every number x
  bool far_gradients = false;  // they come from memory: the step has more than caches hold
  OptimizerStep step;
  // Where the part stands in its table, for stochastic rounding only: row r is first_row + r, and
  // the maps tile [0, width) in ascending offsets. No maps: column c is column c.
  Rounding rounding;
  int64_t first_row = 0;
  const ColumnMap* column_map = nullptr;
  int column_maps = 0;
  // State, as state_needs() of the kind says: matrices[m] is [rows, width], rows side by side;
  // state[v * statistics + s][row] belongs to columns[s].
  float* const* matrices = nullptr;
  float* const* state = nullptr;
  // Ranges of sums. They tile [0, width) unless `sums` is given, when there is one for the whole
  // part. Not read for kinds without sums.
  const ColumnRange* columns = nullptr;
  int statistics = 0;
  // Sums over columns that other ranks own as well: sums[u * needs.sums + k] is the sum for the
  // whole row, statistic_columns its number of columns. Null: taken here, over columns[s].
  const float* sums = nullptr;
  int64_t statistic_columns = 0;
  const Prefetch* prefetch = nullptr;  // of rows and their state; null: as the profile says
};

// Scratch of a kernel call on rows: row_update_scratch_bytes(width) bytes, 64-byte aligned, one per
// thread.
size_t row_update_scratch_bytes(int64_t width);

// One step of numbers that are no rows of a table, such as the parameters of layers: kSgd,
// kMomentumSgd, kAdagrad, kAdam or kLamb with the formulas of optimizer.h. Here kAdam and kLamb take
// L2 decay too, with e = fma(lam, w, g) in place of g.
//
// kLamb has two passes: element_sums() moves m and v, then element_update() takes d from them again
// and steps by the sums of all elements that share a ratio. It does not read the gradients.
struct ElementUpdate {
  float* weights = nullptr;
  const float* gradients = nullptr;  // clamped to +-max_gradient first; 0: no clamp; NaN stays NaN
  float max_gradient = 0;
  float* matrices[2] = {};  // as state_needs() of the kind says
  OptimizerStep step = {};
  float sums[2] = {};  // kLamb's element_update(): SUM(w * w), SUM(d * d)
};

// The gradient sent for a bag: out[c] = clamp(gradient[c] / divisor, +-max_gradient) / length;
// max_gradient 0: no clamp; length 1 for SUM. NaN stays NaN.
struct ScaleGradient {
  float divisor = 1;
  float max_gradient = 0;
  float length = 1;
  Element element = Element::kFloat32;  // of the gradient; out is fp32
};

struct Kernels {
  const char* name;  // "scalar", "avx2", "avx512", "neon"

  void (*pooled_lookup)(const PooledLookup& job, int64_t first_bag, int64_t last_bag) noexcept;

  // One optimizer step of each row.
  void (*row_update)(const RowUpdate& job, int64_t first_row, int64_t last_row,
                     std::byte* scratch) noexcept;

  // out[(u * count + r) * needs.sums + k] = sum k of unique row u over ranges[r], as row_update
  // would take it now (job.sums is not read). Changes nothing.
  void (*row_sums)(const RowUpdate& job, const ColumnRange* ranges, int count, float* out,
                   int64_t first_row, int64_t last_row, std::byte* scratch) noexcept;

  // out[u * width + c] = the gradient sum of unique row u. Reads no table.
  void (*row_gradients)(const RowUpdate& job, float* out, int64_t first_row, int64_t last_row,
                        std::byte* scratch) noexcept;

  // max_norm, after row_update: out[u * count + r] = SUM(w * w) over ranges[r] of the stored row,
  // then, over ranges that tile the part: w = (max_norm / sqrt(n)) * w, rounded as the table is,
  // where n = norms[u * count + r] > max_norm * max_norm. A row cut among owners has one range, and
  // norms that were added up.
  void (*row_norms)(const RowUpdate& job, const ColumnRange* ranges, int count, float* out,
                    int64_t first_row, int64_t last_row, std::byte* scratch) noexcept;
  void (*row_rescale)(const RowUpdate& job, const ColumnRange* ranges, int count,
                      const float* norms, int64_t first_row, int64_t last_row,
                      std::byte* scratch) noexcept;

  // Elements [first, last). For a kind that no ElementUpdate has, nothing.
  void (*element_update)(const ElementUpdate& job, int64_t first, int64_t last) noexcept;

  // kLamb: moves m and v of elements [first, last) and writes the 16-lane sums SUM(w * w) and
  // SUM(d * d) over them, lanes counted from first. For other kinds nothing.
  void (*element_sums)(const ElementUpdate& job, int64_t first, int64_t last, float* out) noexcept;

  // May work in place where the gradient is fp32.
  void (*scale_gradient)(const ScaleGradient& scale, const void* gradient, float* out,
                         int64_t columns) noexcept;

  // The same numbers as floats, exactly; floats as elements, rounded to nearest. No overlap.
  void (*widen)(const void* in, Element element, float* out, int64_t count) noexcept;
  void (*narrow)(const float* in, Element element, void* out, int64_t count) noexcept;

  // A row in 8 bits: out[c] = round((in[c] - offset) * (255 / range)), to nearest even, where
  //   offset = the least of the row (a zero: +0), range = the most - offset, scale = range / 255,
  // and back: out[c] = fma(in[c], scale, offset). This is FBGEMM's row-wise 8-bit quantization
  // (FloatOrHalfToFused8BitRowwiseQuantizedSBFloat: scale and bias of a row in fp32), without the
  // 1e-8 that it adds to the range, which is more than many gradients are. A range below
  // kLeastRange: scale and all codes are 0. A row with a NaN or an infinity, or whose range is no
  // finite float: scale and offset are NaN, so that all of it comes back as NaN. Otherwise what
  // comes back is no further away than
  //   range / 510 * (1 + 2^-12) + 2^-23 * max |in| + kLeastRange.
  RowScale (*quantize)(const float* in, uint8_t* out, int64_t count) noexcept;
  void (*dequantize)(const uint8_t* in, const RowScale& scale, float* out, int64_t count) noexcept;

  // 16-lane sum of row[c] * y[c].
  float (*dot)(const void* row, Element element, const float* y, int64_t columns) noexcept;

  // out = ids, rows at most 2^31. Are all of them in [0, rows)? Of others, anything is written.
  bool (*narrow_ids)(const int64_t* ids, int64_t rows, int32_t* out, int64_t count) noexcept;

  void (*add)(const float* x, float* sum, int64_t columns) noexcept;  // sum += x
  void (*divide)(float* x, float divisor, int64_t columns) noexcept;  // x /= divisor
};

}  // namespace shardrec::compute
