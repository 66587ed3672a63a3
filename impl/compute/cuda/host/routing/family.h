// A device's operations on ids on their way to the owners of their rows.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "compute/cuda/host/routing/batch_checks.h"
#include "compute/cuda/host/routing/deduplication.h"
#include "compute/cuda/host/routing/id_routing.h"
#include "compute/cuda/host/routing/local_ids.h"
#include "compute/cuda/host/routing/received_blocks.h"
#include "compute/cuda/host/stream.h"
#include "compute/routing_operations.h"

namespace shardrec::compute::cuda::host {

class RoutingFamily final : public RoutingOperations {
 public:
  explicit RoutingFamily(std::shared_ptr<Stream> stream)
      : stream_(std::move(stream)),
        batch_(stream_),
        routing_(stream_),
        deduplication_(stream_),
        received_(stream_) {}

  void read_lengths(std::span<const BagLengths> features,
                    std::span<CheckedLengths> checked) override {
    batch_.read_lengths(features, checked);
  }
  void sort_samples(std::span<const SamplesByBag> features,
                    std::span<WrongInteger> wrong) override {
    batch_.sort_samples(features, wrong);
  }
  void count_ids(std::span<const RoutedIds> features, std::span<CheckedIds> checked,
                 std::span<BlockCount> counts) override {
    routing_.count(features, checked, counts);
  }
  // The lengths are read while the ids are counted: the host waits once for both.
  bool count_batch(const BatchLengths& lengths, std::span<RoutedIds> features,
                   std::span<CheckedIds> checked, std::span<BlockCount> counts) override {
    const auto found = routing_.read_and_count(
        features, counts.size(),
        {.reading = batch_.send_lengths(lengths.features), .batch_ids = lengths.ids});
    batch_.take_lengths(lengths.features, found, lengths.checked);
    if (!place_ids(lengths, features)) return false;
    routing_.finish_count(features, checked, counts);
    return true;
  }
  // For a batch that is counted elsewhere: its lengths are written and its ids counted, and nobody waits for what is
  // found. Before write_ids, set_counted() says the features' first and count.
  void recount(const BatchLengths& lengths, std::span<const RoutedIds> features, size_t blocks) {
    routing_.recount(features, blocks,
                     {.reading = batch_.send_lengths(lengths.features), .batch_ids = lengths.ids});
  }
  void set_counted(std::span<const RoutedIds> features) { routing_.set_counted(features); }
  void sort_checked_samples(std::span<const SamplesByBag> features) {
    batch_.sort_checked_samples(features);
  }
  void write_deduplicated(std::span<const DeduplicatedBlocks> messages) {
    deduplication_.write_found(messages);
  }
  // Every id has been checked by count_ids.
  void write_ids(std::span<const RoutedIds> features, const WrittenBlocks& blocks,
                 std::span<CheckedIds>) override {
    routing_.write(features, blocks);
  }
  void deduplicate_ids(std::span<const DeduplicatedBlocks> messages) override {
    deduplication_.run(messages);
  }
  std::shared_ptr<LocalBatch> make_local_batch() override {
    return std::make_shared<LocalIdCopy>(stream_);
  }
  void check_bags(std::span<const Bags> blocks, std::span<BagDefect> defects) override {
    received_.check_bags(blocks, defects);
  }
  void expand_ids(std::span<const CodedIds> blocks, std::span<WrongInteger> wrong) override {
    received_.expand_ids(blocks, wrong);
  }

 private:
  std::shared_ptr<Stream> stream_;
  BatchChecks batch_;
  IdRouting routing_;
  Deduplication deduplication_;
  ReceivedBlocks received_;
};

}  // namespace shardrec::compute::cuda::host
