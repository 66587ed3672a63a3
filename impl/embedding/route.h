// Steps 1 to 3 of the exchange on the source rank: check every id and write it, rebased, into the
// message of each rank that owns a box of its row. The messages are also this rank's own memory of
// which bag went where: the output is put together and gradients are packed from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "core/memory.h"
#include "core/threads.h"
#include "embedding/batch.h"
#include "embedding/layout.h"
#include "embedding/wire.h"

namespace shardrec::embedding {

// A buffer that peers may be reading while its rank lets go of it.
using SharedBuffer = std::shared_ptr<core::Scratch>;

// Bags are handled in chunks of so many samples: a chunk of a block can be walked without the ones
// before.
constexpr int64_t kChunk = 512;

// One block of one outgoing message.
struct SentBlock {
  int64_t ids = 0;
  int64_t bags = 0;
  bool sparse = false;
  const uint32_t* dense_lengths = nullptr;       // [batch_size]
  const SparseLength* sparse_lengths = nullptr;  // [bags]
  const uint32_t* chunk_bags = nullptr;          // [chunks + 1]: bags (not empty) before each chunk

  // Is bag number `bag`, the next one in order, that of this sample?
  bool holds(int64_t bag, int64_t sample) const {
    return sparse ? bag < bags && sparse_lengths[bag].sample == sample : dense_lengths[sample] != 0;
  }
};

class RoutedBatch {
 public:
  explicit RoutedBatch(const Layout& layout);

  // Writes the messages of a batch into `buffer` (nobody reads it any more). verdict: what the
  // checks so far found; a bad id makes it worse. Returns the verdict that went into the headers.
  Verdict route(const CheckedBatch& batch, const Verdict& verdict, core::Threads& threads,
                core::Scratch& buffer);

  // One per rank; valid until the buffer of the last route() is written again.
  std::span<const comm::ConstBytes> messages() const { return messages_; }
  // Blocks of the message to `owner`, as Layout::blocks_of(owner).
  std::span<const SentBlock> blocks(int owner) const {
    return {blocks_.data() + first_block_[static_cast<size_t>(owner)],
            blocks_.data() + first_block_[static_cast<size_t>(owner) + 1]};
  }
  int64_t batch_size() const { return batch_size_; }
  int64_t chunks() const { return (batch_size_ + kChunk - 1) / kChunk; }
  int64_t ids_sent() const { return ids_sent_; }
  size_t memory() const { return chunk_memory_.capacity(); }

 private:
  // A block while it is filled.
  struct Filling {
    int64_t ids = 0;
    int64_t bags = 0;
    int64_t last_sample = -1;
    uint32_t* dense = nullptr;
    SparseLength* sparse = nullptr;
    void* id_data = nullptr;
    float* weight_data = nullptr;
    uint32_t* chunk_bags = nullptr;
    int64_t next_chunk = 0;
  };

  template <class Id>
  void route_all(const CheckedBatch& batch, const Id* values, core::Threads& threads);
  template <class Id>
  Verdict count_feature(const CheckedBatch& batch, const Id* values, int32_t feature);
  template <class Id, class WireId>
  void write_feature(const CheckedBatch& batch, const Id* values, int32_t feature);
  template <class Id, class WireId>
  void write_whole(const CheckedBatch& batch, const Id* values, int32_t feature);
  void lay_out(const CheckedBatch& batch, const Verdict& verdict, core::Scratch& buffer);
  void finish_blocks();
  size_t block_index(int32_t part, size_t k) const {
    const Part& p = layout_.parts()[static_cast<size_t>(part)];
    return first_block_[static_cast<size_t>(p.owner)] +
           static_cast<size_t>(layout_.block_of(part, k));
  }

  const Layout& layout_;
  std::vector<size_t> first_block_;       // by owner, into blocks_
  std::vector<int32_t> feature_ordinal_;  // of a feature among those of its table
  std::vector<SentBlock> blocks_;
  std::vector<Filling> filling_;
  std::vector<Verdict> verdicts_;  // by feature
  std::vector<comm::ConstBytes> messages_;
  std::vector<size_t> message_offsets_;
  core::Scratch chunk_memory_;
  int64_t batch_size_ = 0;
  int64_t ids_sent_ = 0;
};

}  // namespace shardrec::embedding
