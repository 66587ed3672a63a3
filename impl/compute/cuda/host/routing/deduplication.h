// RoutingOperations::deduplicate_ids on a device. It waits once, for how many different ids each block has: the
// messages' new lengths follow from them.
//
// Thread rule: that of the stream.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compute/cuda/host/arguments.h"
#include "compute/cuda/host/results.h"
#include "compute/cuda/host/scans.h"
#include "compute/cuda/host/tiles.h"
#include "compute/routing_operations.h"

namespace shardrec::compute::cuda::host {

class Deduplication {
 public:
  explicit Deduplication(std::shared_ptr<Stream> stream);

  // unique is there when the call returns, and the messages are written by what it has enqueued.
  void run(std::span<const DeduplicatedBlocks> messages);
  // unique alone.
  void find(std::span<const DeduplicatedBlocks> messages);
  // The messages alone, of which unique is known: waits for nothing.
  void write_found(std::span<const DeduplicatedBlocks> messages);

 private:
  // A block that may be shorter with its different ids only.
  struct Candidate {
    size_t message = 0;
    const PlainBlock* block = nullptr;
    int64_t* unique = nullptr;
    size_t ids_at = 0;  // in the copy of all messages
    size_t slots = 0;
    int64_t most_unique = 0;
  };

  void list(std::span<const DeduplicatedBlocks> messages);
  void find_repeats(std::span<const DeduplicatedBlocks> messages);
  void take_results();
  void write(std::span<const DeduplicatedBlocks> messages);
  // The sections of a message, from the first one on that is another than before.
  void write_message(const DeduplicatedBlocks& message, const std::byte* copy, size_t& candidate);
  void move(std::byte* to, const std::byte* from, size_t bytes);

  std::shared_ptr<Stream> stream_;
  Arguments arguments_;
  Results results_;
  Buffer copy_;                  // of the messages with candidates
  Buffer slots_;                 // hash tables
  Buffer lists_;                 // places, then firsts
  std::vector<size_t> copy_at_;  // by message
  std::vector<Candidate> candidates_;
  size_t copy_bytes_ = 0;
  size_t slot_count_ = 0;
  // Arguments, before they are sent.
  std::vector<shardrec_cuda_repeated_ids> repeated_;
  Tiles tiles_;
  std::vector<shardrec_cuda_id_dictionary> dictionaries_;
  std::vector<shardrec_cuda_moved_words> moved_;
  Tiles word_tiles_;
};

}  // namespace shardrec::compute::cuda::host
