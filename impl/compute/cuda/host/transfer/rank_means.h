// Means over ranks on a device (compute::RankMeans).
//
// Thread rule: that of the stream.
#pragma once

#include <memory>

#include "compute/cuda/host/arguments.h"
#include "compute/transfer_operations.h"

namespace shardrec::compute::cuda::host {

class RankAverages {
 public:
  explicit RankAverages(std::shared_ptr<Stream> stream);

  // Enqueued when the call returns; the list is copied. Throws UNSUPPORTED: there are too many ranks.
  void run(const RankMeans& means);

 private:
  std::shared_ptr<Stream> stream_;
  Arguments arguments_;
};

}  // namespace shardrec::compute::cuda::host
