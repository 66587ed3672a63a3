// What copies of rows have gained, on a device (compute::RowGains).
//
// Thread rule: that of the stream.
#pragma once

#include <memory>
#include <span>

#include "compute/cuda/host/arguments.h"
#include "compute/transfer_operations.h"

namespace shardrec::compute::cuda::host {

class RowGainSums {
 public:
  explicit RowGainSums(std::shared_ptr<Stream> stream);

  // Enqueued when the call returns; the numbers are copied.
  void run(std::span<const RowGains> gains);

 private:
  std::shared_ptr<Stream> stream_;
  Arguments arguments_;
};

}  // namespace shardrec::compute::cuda::host
