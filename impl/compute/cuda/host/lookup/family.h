// A device's operations on rows of tables that are read.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "compute/cuda/host/lookup/bag_sums.h"
#include "compute/cuda/host/lookup/output_lookup.h"
#include "compute/cuda/host/stream.h"
#include "compute/lookup_operations.h"

namespace shardrec::compute::cuda::host {

class LookupFamily final : public LookupOperations {
 public:
  explicit LookupFamily(std::shared_ptr<Stream> stream)
      : bag_sums_(stream), outputs_(std::move(stream)) {}

  void sum_bags(std::span<const BagSums> blocks) override { bag_sums_.run(blocks); }
  void look_up_outputs(std::span<const BagOutputs> blocks, size_t) override {
    outputs_.run(blocks);
  }

 private:
  BagSummation bag_sums_;
  OutputLookup outputs_;
};

}  // namespace shardrec::compute::cuda::host
