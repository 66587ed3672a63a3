// Gradients of outputs, packed on a device for the owners of rows (compute::BagGradients,
// compute::SequenceGradients), a launch for each kind of them.
//
// Thread rule: that of the stream.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "compute/cuda/host/arguments.h"
#include "compute/cuda/host/launch_list.h"
#include "compute/gradient_operations.h"

namespace shardrec::compute::cuda::host {

class GradientPacking {
 public:
  explicit GradientPacking(std::shared_ptr<Stream> stream);

  // Enqueued when the calls return; the lists are copied.
  void run(std::span<const BagGradients> blocks);
  void run(std::span<const SequenceGradients> blocks);

 private:
  // Of one type of gradients, read in vectors or not.
  struct Kind {
    LaunchList<shardrec_cuda_gradients> launch;
    std::vector<size_t> first_map;  // by job
  };

  void clear();
  template <class Gradients>
  void add(const Gradients& block, shardrec_cuda_gradients job);
  void run_kinds();

  std::shared_ptr<Stream> stream_;
  Arguments arguments_;
  std::array<std::array<Kind, 2>, 3> kinds_;  // by element, then vectors
  std::vector<shardrec_cuda_column_map> maps_;
};

}  // namespace shardrec::compute::cuda::host
