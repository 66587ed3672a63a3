// Rows of floats in fewer bytes and back, on a device (compute::RowEncoding, compute::RowDecoding), a launch
// for each kind of them.
//
// Thread rule: that of the stream.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "compute/cuda/host/arguments.h"
#include "compute/cuda/host/launch_list.h"
#include "compute/transfer_operations.h"

namespace shardrec::compute::cuda::host {

class RowCodes {
 public:
  explicit RowCodes(std::shared_ptr<Stream> stream);

  // Enqueued when the calls return; the lists are copied.
  void run(std::span<const RowEncoding> blocks);
  void run(std::span<const RowDecoding> blocks);

 private:
  template <class Job>
  struct Kind {
    LaunchList<Job> launch;
    std::vector<size_t> first_box;  // by job
  };
  // Boxed or not, then in vectors or not.
  template <class Job>
  using Kinds = std::array<std::array<Kind<Job>, 2>, 2>;

  template <class Job, class Block, class Launch>
  void run_kinds(Kinds<Job>& kinds, std::span<const Block> blocks, Launch launch);

  std::shared_ptr<Stream> stream_;
  Arguments arguments_;
  std::vector<shardrec_cuda_column_range> boxes_;
  Kinds<shardrec_cuda_row_encoding> encodings_;
  Kinds<shardrec_cuda_row_decoding> decodings_;
};

}  // namespace shardrec::compute::cuda::host
