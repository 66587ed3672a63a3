// The operations of a step on whole batches: plain structs of addresses and sizes. The addresses are
// in the memory of the back end that runs the operation (backend.h); the lists of structs are the
// host's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "compute/bags.h"
#include "compute/kernels.h"

namespace shardrec::compute {

// Rows of a part, or of some of its columns: row r begins at element r * stride.
struct TableRows {
  const void* data = nullptr;
  Element element = Element::kFloat32;
  size_t stride = 0;   // elements; of a coded table bytes
  int64_t width = 0;   // columns
  bool coded = false;  // as PooledLookup::coded; for BagOutputs only
};

// Initial values of the rows of a part, side by side: those of their table, row r of the part being
// its row first_row + r.
struct InitialRows {
  void* data = nullptr;  // [rows, width]
  Element element = Element::kFloat32;
  int64_t rows = 0;
  int64_t width = 0;
  int64_t first_row = 0;
  std::span<const ColumnMap> columns;  // they tile [0, width)
  // Uniform in [low, high), from the seed, the table's name, its row and column only.
  int64_t seed = 0;
  std::string_view table;
  float low = 0;
  float high = 0;
};

// The sums of a block's bags, as they travel: out = [rows, width] floats. A row per bag that is not
// empty; without bags, a row of the table per id. weights null: all 1.
struct BagSums {
  TableRows table;
  Ids ids;
  const float* weights = nullptr;
  const Bags* bags = nullptr;  // null: each id is a bag of its own
  int64_t rows = 0;
  float* out = nullptr;
  // Where it is wanted, a bit per sample: is its bag in out? Words behind those are zeroed too.
  std::span<uint64_t> present;
};

// The outputs of some columns of a feature, straight from its rows: nobody else adds to them.
// out: a row per item, an empty bag's is 0. mean: sums are divided by the number of the bag's ids.
struct BagOutputs {
  TableRows table;
  Ids ids;
  const float* weights = nullptr;
  int64_t items = 0;                    // samples; of a sequence, ids
  const uint32_t* lengths = nullptr;    // [items], null: a sequence
  const uint32_t* chunk_ids = nullptr;  // [chunks + 1]: ids before each chunk of items
  void* out = nullptr;
  Element out_element = Element::kFloat32;
  size_t out_stride = 0;  // elements
  bool mean = false;
};

// Where the gradient rows of a block's bags lie: at data + r * stride, r the number of the bag among
// those that are not empty (of a sequence, of the id) or, by_sample, of its sample.
struct GradientBlock {
  const Bags* bags = nullptr;
  int64_t rows = 0;
  const float* data = nullptr;
  int64_t stride = 0;
  bool by_sample = false;
  const float** out = nullptr;  // [rows]: the address of each
};

// A row of more occurrences is a hot one: not one thread alone sums its gradients.
inline constexpr int64_t kHotOccurrences = 8192;

// The touched rows of one shard in a step, and what their gradients are made of.
struct TouchedRows {
  RowUpdate job;
  int64_t rows = 0;
  int64_t bags = 0;  // gradient rows that there are for them
};

// Sums over columns of each touched row of a shard, as Kernels::row_sums and row_norms write them.
struct RowSums {
  std::span<const ColumnRange> ranges;
  float* out = nullptr;  // null: not wanted of this shard
};

// How the touched rows of a shard are stepped.
struct RowStep {
  const float* sums = nullptr;  // as RowUpdate::sums
  int64_t statistic_columns = 0;
  bool rescales = false;  // max_norm is applied with norms over the columns of the shard
};

// Rows of floats as they travel in fewer bytes: [rows, width] of element, rounded to nearest; or,
// with boxes, a RowScale [rows, boxes], then [rows, width] bytes, as Kernels::quantize makes them of
// the columns of each box. The boxes tile the width.
struct RowCoding {
  int64_t rows = 0;
  int64_t width = 0;
  Element element = Element::kFloat32;  // of 16 bits, where there are no boxes
  std::span<const ColumnRange> boxes;
};
struct RowEncoding : RowCoding {
  const float* floats = nullptr;
  std::byte* coded = nullptr;
};
struct RowDecoding : RowCoding {
  const std::byte* coded = nullptr;
  float* floats = nullptr;
};

}  // namespace shardrec::compute
