// Jobs on touched rows, a list for each kernel: the launches of one or more operations, whose lists go
// to the device together.
//
// Thread rule: that of the stream.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compute/cuda/host/arguments.h"
#include "compute/kernels.h"

namespace shardrec::compute::cuda::host {

class RowLaunches {
 public:
  explicit RowLaunches(std::shared_ptr<Stream> stream);

  void clear();
  // A job, but for its lanes and tiles, which follow from its kind and the other jobs of it. maps: of
  // its rounding. Launches are in the order of the operations' numbers: updates, norms, rescaling.
  void add(shardrec_cuda_row_kind kind, const shardrec_cuda_row_job& job,
           std::span<const ColumnMap> maps);
  // Sends the lists, then enqueues all launches.
  void run();

 private:
  struct Launch {
    shardrec_cuda_row_kind kind;
    std::vector<shardrec_cuda_row_job> jobs;
    std::vector<std::span<const ColumnMap>> maps;  // by job
    std::vector<int64_t> first_block;
    // On the device.
    const shardrec_cuda_row_job* jobs_there = nullptr;
    const int64_t* first_block_there = nullptr;
  };

  static void cut(Launch& launch);

  std::shared_ptr<Stream> stream_;
  Arguments arguments_;
  std::vector<Launch> launches_;  // by operation
};

}  // namespace shardrec::compute::cuda::host
