// RoutingOperations::check_bags and expand_ids on a device. Both wait for what the device found.
//
// Thread rule: that of the stream.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compute/cuda/host/arguments.h"
#include "compute/cuda/host/results.h"
#include "compute/cuda/host/routing/wrong_values.h"
#include "compute/cuda/host/tiles.h"
#include "compute/routing_operations.h"

namespace shardrec::compute::cuda::host {

class ReceivedBlocks {
 public:
  explicit ReceivedBlocks(std::shared_ptr<Stream> stream);

  void check_bags(std::span<const Bags> blocks, std::span<BagDefect> defects);
  void expand_ids(std::span<const CodedIds> blocks, std::span<WrongInteger> wrong);

 private:
  std::shared_ptr<Stream> stream_;
  Arguments arguments_;
  Results results_;
  WrongValues wrong_values_;
  std::vector<shardrec_cuda_bags> bags_;
  std::vector<shardrec_cuda_coded_ids> coded_;
  Tiles tiles_;
};

}  // namespace shardrec::compute::cuda::host
