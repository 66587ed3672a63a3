// compute::LocalBatch on a device: memory of its own, so that several batches may be under way.
//
// Thread rule: that of the stream.
#pragma once

#include <memory>
#include <span>

#include "compute/cuda/host/routing/batch_checks.h"
#include "compute/cuda/host/routing/id_routing.h"
#include "compute/local_batch.h"

namespace shardrec::compute::cuda::host {

class LocalIdCopy final : public LocalBatch {
 public:
  explicit LocalIdCopy(const std::shared_ptr<Stream>& stream)
      : lengths_(stream), routing_(stream) {}

  void begin(const BatchLengths& lengths, std::span<const RoutedIds> features, size_t blocks,
             const LocalIds& to) override {
    routing_.copy_local(
        features, blocks,
        {.reading = lengths_.send_lengths(lengths.features), .batch_ids = lengths.ids}, to);
  }
  const uint32_t* good() const override { return routing_.good(); }
  bool finish(const BatchLengths& lengths, std::span<RoutedIds> features,
              std::span<CheckedIds> checked, std::span<BlockCount> counts) override {
    const auto found = routing_.found_lengths();
    lengths_.take_lengths(lengths.features, found, lengths.checked, routing_.wrong_values());
    if (!place_ids(lengths, features)) return false;
    routing_.finish_count(features, checked, counts);
    return true;
  }

 private:
  BatchChecks lengths_;
  IdRouting routing_;
};

}  // namespace shardrec::compute::cuda::host
