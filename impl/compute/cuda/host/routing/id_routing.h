// RoutingOperations::count_ids and write_ids on a device. count() checks all ids, those also that Backend allows to
// be left to write(), and waits for what the device found; write() waits for nothing.
//
// Thread rule: that of the stream.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compute/cuda/host/arguments.h"
#include "compute/cuda/host/results.h"
#include "compute/cuda/host/routing/interval_blocks.h"
#include "compute/cuda/host/routing/wrong_values.h"
#include "compute/cuda/host/scans.h"
#include "compute/cuda/host/tiles.h"
#include "compute/local_batch.h"
#include "compute/routing_operations.h"

namespace shardrec::compute::cuda::host {

// Lengths that are read while ids are counted.
struct GivenLengths {
  shardrec_cuda_length_reading reading = {};  // BatchChecks::send_lengths()
  int64_t batch_ids = 0;
};

class IdRouting {
 public:
  explicit IdRouting(std::shared_ptr<Stream> stream);

  void count(std::span<const RoutedIds> features, std::span<CheckedIds> checked,
             std::span<BlockCount> counts);
  // The same in two halves, where the features' first and count follow from lengths that are read on the way. The
  // first half waits, and returns what was found in the lengths, by feature; valid until the next call but
  // finish_count().
  std::span<const shardrec_cuda_checked_list> read_and_count(std::span<const RoutedIds> features,
                                                             size_t blocks,
                                                             const GivenLengths& lengths);
  // The same of a batch that another IdRouting has counted, or will have: waits for nothing. Before write(), set_counted()
  // says the features' first and count.
  void recount(std::span<const RoutedIds> features, size_t blocks, const GivenLengths& lengths);
  void set_counted(std::span<const RoutedIds> features);
  // The first half of a batch that stays on this rank (compute::LocalBatch), copied on the way: waits for nothing.
  // What is left is found_lengths(), which waits, wrong_values() and finish_count().
  void copy_local(std::span<const RoutedIds> features, size_t blocks, const GivenLengths& lengths,
                  const LocalIds& to);
  std::span<const shardrec_cuda_checked_list> found_lengths();
  // By feature, of what is wrong; behind found_lengths().
  std::span<const shardrec_cuda_wrong_values> wrong_values();
  const uint32_t* good() const { return local_.good; }
  // features: with their first and count.
  void finish_count(std::span<const RoutedIds> features, std::span<CheckedIds> checked,
                    std::span<BlockCount> counts);
  // The sums of the last count() are those of the features, or are made again. Enqueued when the call
  // returns.
  void write(std::span<const RoutedIds> features, const WrittenBlocks& blocks);

 private:
  // Where the sums of a feature are, and its part of the table.
  struct Counted {
    RoutedIds feature;
    IntervalBlocks::Part part;
    int64_t first_strip = 0;
    int64_t first_block_sum = 0;
    int64_t first_place = -1;  // -1: in shared memory
    int64_t strips = 0;
  };

  void measure(std::span<const RoutedIds> features, size_t blocks);
  bool are_counted(std::span<const RoutedIds> features, size_t blocks) const;
  // lengths: where the host does not know yet how many ids the features have.
  void send(std::span<const RoutedIds> features, const WrittenBlocks& blocks,
            const GivenLengths& lengths = {});
  void list_feature(const Counted& counted, const WrittenBlocks& blocks,
                    const int32_t* interval_blocks);
  uint64_t* block_sums(const Counted& counted) const;
  void list_blocks(const Counted& counted, const WrittenBlocks& blocks);
  size_t argument_bytes(std::span<const RoutedIds> features) const;
  // Room for results, then the operation.
  void begin_results();
  void enqueue_counting();
  void take_results(std::span<const uint64_t> found, std::span<CheckedIds> checked,
                    std::span<BlockCount> counts);

  std::shared_ptr<Stream> stream_;
  Arguments arguments_;
  Results results_;
  Buffer lengths_are_good_;
  WrongValues wrong_values_;
  Buffer sums_;    // of strips, then of blocks
  Buffer places_;  // of features of many blocks
  IntervalBlocks interval_blocks_;
  Tiles tiles_;
  Tiles bag_tiles_;
  Tiles sum_tiles_;
  std::vector<Counted> counted_;
  size_t counted_blocks_ = 0;
  // Sums and places of all features.
  int64_t strips_ = 0;
  int64_t block_sum_count_ = 0;
  int64_t place_count_ = 0;
  shardrec_cuda_block_place* job_places_ = nullptr;
  shardrec_cuda_id_routing job_ = {};
  shardrec_cuda_local_ids local_ = {};
  std::vector<shardrec_cuda_local_chunks> local_chunks_;  // by feature; empty: nothing is copied
  // Arguments, before they are sent.
  std::vector<shardrec_cuda_routed_ids> features_;
  std::vector<int64_t> first_strip_;
  std::vector<shardrec_cuda_written_block> written_;
  std::vector<uint8_t> listed_;  // by sections: does a block have them?
  std::vector<shardrec_cuda_block_total> totals_;
  std::vector<shardrec_cuda_strips_of_block> strips_of_blocks_;
};

}  // namespace shardrec::compute::cuda::host
