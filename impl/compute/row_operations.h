// The family of operations on the touched rows of a step, on their owner in backward.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "compute/bags.h"
#include "compute/kernels.h"
#include "compute/row_bits.h"
#include "compute/row_groups.h"

namespace shardrec::compute {

// A row of more occurrences is a hot one: not one thread alone sums its gradients.
inline constexpr int64_t kHotOccurrences = 8192;

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

// The touched rows of one shard in a step, and what their gradients are made of.
struct TouchedRows {
  RowUpdate job;
  int64_t rows = 0;                  // at most
  const int64_t* counted = nullptr;  // how many there are, as RowGroups::row_count(); null: rows
  int64_t bags = 0;                  // gradient rows that there are for them
  // Where these lie: job.gradients is written when the rows are opened. None: it has been written.
  std::span<const GradientBlock> located;
  // A bit per row of the shard, in the memory of the back end: those of the touched rows are set by update_rows(), or
  // before it by open_rows(). Null: nobody asks.
  RowWord* changed = nullptr;
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

// When an operation is over, and the thread rule: backend.h.
class RowOperations {
 public:
  virtual ~RowOperations() = default;
  RowOperations(const RowOperations&) = delete;
  RowOperations& operator=(const RowOperations&) = delete;

  virtual std::unique_ptr<RowGroups> make_row_groups() = 0;

  // The touched rows of a step, by shard: what the next five are about, until this is called again.
  // Rows and gradients stay where they are until then.
  virtual void open_rows(std::span<const TouchedRows> shards) = 0;
  // The gradients of the rows, by shard: [rows, width] floats; null: not wanted.
  virtual void sum_gradients(std::span<float* const> out) = 0;
  // What the optimizers sum over columns (Kernels::row_sums), by shard.
  virtual void sum_rows(std::span<const RowSums> shards) = 0;
  // One optimizer step of each row, by shard. Throws before the first row has changed, or not at all.
  virtual void update_rows(std::span<const RowStep> shards) = 0;
  // Norms of the stored rows (Kernels::row_norms), by shard; then max_norm with norms over whole rows,
  // by shard, [rows]; null: not wanted.
  virtual void sum_norms(std::span<const RowSums> shards) = 0;
  virtual void rescale_rows(std::span<const float* const> norms) = 0;

 protected:
  RowOperations() = default;
};

}  // namespace shardrec::compute
