// The operations of a back end on the touched rows of a step, on a device. Sums over columns are taken
// range by range, so a shard is a job for each of its ranges; the jobs that one kernel takes are one
// launch.
//
// Thread rule: that of the stream.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compute/cuda/host/arguments.h"
#include "compute/cuda/host/gradients/gradient_rows.h"
#include "compute/cuda/host/rows/row_guard.h"
#include "compute/cuda/host/rows/row_launches.h"
#include "compute/math/rounding.h"
#include "compute/row_operations.h"

namespace shardrec::compute::cuda::host {

// Every call is enqueued when it returns. Matrices, row values, ranges and maps of columns are lists of
// the host that stay until the next open().
class RowUpdates {
 public:
  explicit RowUpdates(std::shared_ptr<Stream> stream);

  void open(std::span<const TouchedRows> shards);
  void gradients(std::span<float* const> out);
  void sums(std::span<const RowSums> shards);
  // Throws before the first row changes, or DEVICE_ERROR.
  void update(std::span<const RowStep> shards);
  void norms(std::span<const RowSums> shards);
  void rescale(std::span<const float* const> norms);

 private:
  int64_t count_rows();
  uint32_t* make_room();
  void enqueue_opening();
  // A job on some columns of a shard, which says neither what comes in nor what goes out.
  shardrec_cuda_row_job job_of(size_t shard, ColumnRange range, math::RoundingUse use) const;
  void add(size_t shard, int32_t operation, ColumnRange range, const shardrec_cuda_row_job& job);
  void add_steps(size_t shard, const RowStep& step);
  float* room_for_norms(std::span<const RowStep> shards);

  std::shared_ptr<Stream> stream_;
  std::vector<TouchedRows> shards_;
  // The same for the device, and what was found out about them there.
  std::vector<shardrec_cuda_touched_rows> touched_;
  std::vector<int64_t> first_block_;
  Arguments opened_;
  GradientRows gradient_rows_;
  Buffer found_;
  Buffer hot_sums_;
  shardrec_cuda_hot_row* hot_rows_ = nullptr;  // in found_, as what follows
  int32_t* row_of_sum_ = nullptr;
  int64_t widest_ = 0;
  int64_t most_sums_ = 0;
  uint32_t most_hot_rows_ = 0;
  uint32_t most_hot_sums_ = 0;

  RowGuard guard_;
  RowLaunches launches_;
  Buffer norms_;
};

}  // namespace shardrec::compute::cuda::host
