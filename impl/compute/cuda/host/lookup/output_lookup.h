// Outputs looked up in tables of a device (compute::BagOutputs).
#pragma once

#include <memory>
#include <span>

#include "compute/cuda/host/lookup/row_lookups.h"
#include "compute/lookup_operations.h"

namespace shardrec::compute::cuda::host {

class OutputLookup {
 public:
  explicit OutputLookup(std::shared_ptr<Stream> stream);

  // Enqueued when the call returns; the list of blocks is copied. Throws UNSUPPORTED: coded tables.
  void run(std::span<const BagOutputs> blocks);

 private:
  RowLookups lookups_;
};

}  // namespace shardrec::compute::cuda::host
