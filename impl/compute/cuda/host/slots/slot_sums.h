// Sums over the ranks on a device: of the gradients of slots, and of statistics of whole rows
// (compute/slot_operations.h).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compute/cuda/host/arguments.h"
#include "compute/cuda/host/results.h"
#include "compute/cuda/host/tiles.h"
#include "compute/slot_operations.h"

namespace shardrec::compute::cuda::host {

// Throws UNSUPPORTED: sums of more than SHARDREC_CUDA_SUM_RANKS ranks.
class SlotSums {
 public:
  explicit SlotSums(std::shared_ptr<Stream> stream);

  // rows[i]: those that sums[i] has, there when the call returns.
  void count(std::span<const SlotSum> sums, std::span<int64_t> rows);
  // Enqueued when the call returns; the lists of structs are copied.
  void add(std::span<const SlotSum> sums);

 private:
  void list(std::span<const SlotSum> sums);
  void list_rows_of(const SlotSum& sum);
  shardrec_cuda_slot_sums send();

  std::shared_ptr<Stream> stream_;
  Arguments arguments_;
  Results results_;
  Buffer marks_;
  Buffer room_;
  Tiles items_;
  Tiles rows_;
  std::vector<shardrec_cuda_slot> addends_;
  std::vector<shardrec_cuda_slot_sum> sums_;
  std::vector<shardrec_cuda_slot_list> lists_;
  int64_t all_items_ = 0;
  int32_t most_ranks_ = 0;
};

class RowSumTotals {
 public:
  explicit RowSumTotals(std::shared_ptr<Stream> stream);

  // Enqueued when the call returns; the lists of structs are copied.
  void add(std::span<const RowTotals> shards);

 private:
  std::shared_ptr<Stream> stream_;
  Arguments arguments_;
  Tiles values_;
  std::vector<shardrec_cuda_row_addend> addends_;
  std::vector<shardrec_cuda_row_total> totals_;
};

}  // namespace shardrec::compute::cuda::host
