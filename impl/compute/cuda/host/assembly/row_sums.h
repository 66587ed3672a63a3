// Rows of several blocks added up on a device: what assembled outputs and the sums of nodes have in
// common. A launch for rows in vectors, one for others.
//
// Thread rule: that of the stream.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "compute/cuda/host/arguments.h"
#include "compute/cuda/host/launch_list.h"

namespace shardrec::compute::cuda::host {

class RowSumLaunches {
 public:
  explicit RowSumLaunches(std::shared_ptr<Stream> stream);

  // Begins other sums.
  void clear();
  // The next addend of the next sum.
  void add(const shardrec_cuda_addend& addend);
  // The sum of the addends since the last one. sum: all but its addends and lanes.
  void end_sum(shardrec_cuda_row_sum sum);
  // Enqueues all. what: of a sentence, where the device refuses (host::require).
  void run(std::string_view what);

 private:
  std::shared_ptr<Stream> stream_;
  Arguments arguments_;
  std::vector<shardrec_cuda_addend> addends_;
  size_t first_of_sum_ = 0;
  std::vector<size_t> first_addend_[2];        // by sum
  LaunchList<shardrec_cuda_row_sum> sums_[2];  // of single numbers, of vectors
};

}  // namespace shardrec::compute::cuda::host
