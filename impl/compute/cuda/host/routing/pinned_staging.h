// compute::HostStaging on a device: tensors are copied to it in a stream of their own, beside the operations of the back
// end, which wait for the copies. What the host has to know of a batch is found in that stream too, in memory of its own;
// the operations of the back end, which nobody waits for, do the same work again in theirs.
//
// Thread rule: that of the streams.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compute/cuda/host/memory.h"
#include "compute/cuda/host/routing/batch_checks.h"
#include "compute/cuda/host/routing/deduplication.h"
#include "compute/cuda/host/routing/family.h"
#include "compute/cuda/host/routing/id_routing.h"
#include "compute/cuda/host/stream.h"
#include "compute/host_staging.h"

namespace shardrec::compute::cuda::host {

class PinnedStaging final : public HostStaging {
 public:
  // copies: where tensors are copied and counted; operations, routing: of the back end.
  PinnedStaging(std::shared_ptr<Stream> copies, std::shared_ptr<Stream> operations,
                RoutingFamily& routing);
  // Waits for copies on their way.
  ~PinnedStaging() override;

  // Waits for the copies of the previous batch. They are already over if the host has learned whether that batch was good.
  void send(std::span<StagedTensor> tensors) override;
  void release() override;
  bool count_batch(const BatchLengths& lengths, std::span<RoutedIds> features,
                   std::span<CheckedIds> checked, std::span<BlockCount> counts) override;
  void sort_samples(std::span<const SamplesByBag> features, std::span<WrongInteger> wrong) override;
  void deduplicate_ids(const WrittenBlocks& blocks, std::span<const std::byte> bodies,
                       std::span<const DeduplicatedBlocks> messages) override;

 private:
  void wait_for_copies();
  // Where the host has what is copied there.
  const std::byte* here(const void* there) const;
  // The lengths and features with results of their own.
  BatchLengths with_own_lengths(const BatchLengths& lengths, std::span<const RoutedIds> features);

  std::shared_ptr<Stream> copies_;
  std::shared_ptr<Stream> operations_;
  RoutingFamily& routing_;
  PinnedRoom here_;
  Buffer there_;
  Event copied_;              // here_ is read, there_ is written
  uint64_t copied_at_ = 0;    // its place in copies_
  uint64_t followed_at_ = 0;  // events from this place of operations_ on are behind it
  Event read_;                // of operations_: there_ is read
  BatchChecks lengths_;
  IdRouting ids_;
  Deduplication deduplication_;
  Buffer own_lengths_;
  std::vector<BagLengths> own_bags_;
  std::vector<RoutedIds> own_features_;
  Buffer own_bodies_;
  std::vector<BlockSections> own_sections_;
  std::vector<DeduplicatedBlocks> own_messages_;
  bool is_sent_ = false;  // operations may read there_ that are not behind read_
};

}  // namespace shardrec::compute::cuda::host
