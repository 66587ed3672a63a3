// A device's operations on the touched rows of a step.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "compute/cuda/host/rows/row_groups.h"
#include "compute/cuda/host/rows/row_updates.h"
#include "compute/cuda/host/stream.h"
#include "compute/row_operations.h"

namespace shardrec::compute::cuda::host {

class RowFamily final : public RowOperations {
 public:
  explicit RowFamily(std::shared_ptr<Stream> stream)
      : stream_(std::move(stream)),
        groups_stream_(std::make_shared<Stream>(stream_->device(), stream_->booked(),
                                                HostWait::kSleep, stream_->stop())),
        rows_(stream_) {}

  std::unique_ptr<RowGroups> make_row_groups() override {
    return std::make_unique<SortedRows>(groups_stream_, stream_);
  }
  void open_rows(std::span<const TouchedRows> shards) override { rows_.open(shards); }
  void sum_gradients(std::span<float* const> out) override { rows_.gradients(out); }
  void sum_rows(std::span<const RowSums> shards) override { rows_.sums(shards); }
  void update_rows(std::span<const RowStep> shards) override { rows_.update(shards); }
  void sum_norms(std::span<const RowSums> shards) override { rows_.norms(shards); }
  void rescale_rows(std::span<const float* const> norms) override { rows_.rescale(norms); }

 private:
  std::shared_ptr<Stream> stream_;
  std::shared_ptr<Stream> groups_stream_;  // of the row groups of all lookups
  RowUpdates rows_;
};

}  // namespace shardrec::compute::cuda::host
