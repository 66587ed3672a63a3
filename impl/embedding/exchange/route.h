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
#include "compute/buffer.h"
#include "compute/kernels.h"
#include "core/threads.h"
#include "embedding/batch/batch.h"
#include "embedding/exchange/wire.h"
#include "embedding/tables/layout.h"
#include "embedding/tables/step_context.h"

namespace shardrec::embedding {

using compute::SharedBuffer;

// One block of one outgoing message.
struct SentBlock : compute::SentBags {
  int64_t rows = 0;  // in the output and gradient messages: bags, or ids of a sequence

  // Rows of the output message: of a sequence, one per different id where they travelled once.
  int64_t answers(bool sequence) const { return sequence && unique != 0 ? unique : rows; }
};

class RoutedBatch {
 public:
  // weight_gradient: option of the lookup; the intervals of pooled features are then kept too.
  RoutedBatch(const Layout& layout, bool weight_gradient,
              const std::shared_ptr<compute::Memory>& memory);

  // From now on, ids travel once per block where that takes fewer bytes.
  void set_deduplicates(bool deduplicates) { deduplicates_ = deduplicates; }

  // Writes the messages of a batch into `buffer` (nobody reads it any more). verdict: what the
  // checks so far found; a bad id makes it worse. Returns the verdict that went into the headers.
  Verdict route(const CheckedBatch& batch, const Verdict& verdict, const StepContext& context,
                compute::Buffer& buffer);

  // For the headers of the next route(): ids that this rank has looked up so far.
  void set_looked_up(int64_t ids) { looked_up_ = ids; }

  // One per rank; valid until the buffer of the last route() is written again.
  std::span<const comm::ConstBytes> messages() const { return messages_; }
  // Blocks of the message to `owner`, as Layout::blocks_of(owner).
  std::span<const SentBlock> blocks(int owner) const {
    return {blocks_.data() + first_block_[static_cast<size_t>(owner)],
            blocks_.data() + first_block_[static_cast<size_t>(owner) + 1]};
  }
  int64_t ids_sent() const { return ids_sent_; }
  size_t memory() const {
    return chunk_memory_.capacity() + feature_memory_.capacity() + dictionary_memory_.capacity();
  }

  // Of a feature, 0 after a bad verdict.
  int64_t ids(int32_t feature) const { return of(feature).ids; }
  int64_t items(int32_t feature) const {
    return of(feature).sequence ? of(feature).ids : of(feature).samples;
  }
  int64_t chunks(int32_t feature) const { return compute::chunks_of(items(feature)); }
  // Bag lengths without the ids that were dropped, [samples].
  std::span<const uint32_t> lengths(int32_t feature) const {
    return {of(feature).lengths, static_cast<size_t>(of(feature).samples)};
  }
  // Where each id went: the interval of its table's routing, kDropped: nowhere. Empty: all in
  // interval 0, or not kept (the feature is pooled).
  static constexpr int32_t kDropped = compute::kDroppedId;
  std::span<const int32_t> intervals(int32_t feature) const {
    const Feature& f = of(feature);
    return {f.intervals, f.intervals == nullptr ? 0 : static_cast<size_t>(f.ids)};
  }
  // Ids outside the table's rows that were dropped or clamped.
  int64_t out_of_range(int32_t feature) const { return of(feature).out_of_range; }

 private:
  // A block that ids of an interval go to.
  struct Target {
    size_t writer = 0;
    int64_t row = 0;  // first one of the block's part
  };
  struct Feature {
    // Of the model.
    int32_t table = 0;
    size_t ordinal = 0;  // among the features of its table
    shardrec_out_of_range policy = SHARDREC_OUT_OF_RANGE_ERROR;
    bool sequence = false;
    bool whole = false;  // every block of it holds all its ids
    bool keeps_intervals = false;
    bool streams = false;           // each range of rows is written once: route_streams.cpp
    bool writes_in_pieces = false;  // its ids are checked and written at once, in pieces
    std::vector<Target> targets;    // as Routing::targets of its table; empty where it is whole
    // Of the batch.
    int64_t samples = 0;
    int64_t ids = 0;
    const uint32_t* lengths = nullptr;
    uint32_t* kept_lengths = nullptr;  // where ids may be dropped
    int32_t* intervals = nullptr;
    int64_t out_of_range = 0;
    Verdict verdict;
  };
  // A block while it is filled.
  struct BlockWriter {
    int64_t ids = 0;
    int64_t bags = 0;
    int64_t last_sample = -1;
    uint32_t* dense = nullptr;
    SparseLength* sparse = nullptr;
    void* id_data = nullptr;
    float* weight_data = nullptr;
    uint32_t* chunk_rows = nullptr;
    uint32_t* chunk_ids = nullptr;
    int64_t next_chunk = 0;
  };

  // route_feature.cpp: one feature at a time, on one thread each.
  void count(const CheckedBatch& batch, int32_t feature);
  void write(const CheckedBatch& batch, int32_t feature);
  bool admit(int32_t feature, int64_t position, int64_t rows, int64_t& row);
  template <class Id>
  void count_feature(const CheckedBatch& batch, const Id* values, int32_t feature);
  template <class Id>
  void count_streams(const CheckedBatch& batch, const Id* values, int32_t feature);
  template <class Id, class WireId>
  void write_streams(const CheckedBatch& batch, const Id* values, int32_t feature);
  template <class Id, class WireId>
  void write_cut(const CheckedBatch& batch, const Id* values, int32_t feature);
  template <class Id, class WireId>
  void write_whole(const CheckedBatch& batch, const Id* values, int32_t feature);

  // A share of the writing of a feature: all but its ids, which others narrow; or ids
  // [first, last) of them.
  struct Piece {
    int32_t feature = 0;
    int64_t first = 0;
    int64_t last = 0;
    bool good = true;
  };
  void cut_pieces();
  void narrow(const CheckedBatch& batch, const compute::Kernels& kernels, Piece& piece);
  Verdict first_verdict(const CheckedBatch& batch);

  void make_room(const CheckedBatch& batch);
  void lay_out(const CheckedBatch& batch, const Verdict& verdict, compute::Buffer& buffer);
  BlockRecord record_of(const Block& block, const BlockWriter& writer) const;
  // route_deduplicate.cpp: rewrites the finished messages to other ranks, in place.
  void deduplicate(std::byte* base, bool weighted, core::Threads& threads);
  size_t deduplicate_message(int owner, std::byte* message, bool weighted, std::byte* scratch);

  const Feature& of(int32_t feature) const { return features_[static_cast<size_t>(feature)]; }
  size_t block_index(int32_t part, size_t k) const {
    const Part& p = layout_.parts()[static_cast<size_t>(part)];
    return first_block_[static_cast<size_t>(p.owner)] +
           static_cast<size_t>(layout_.block_of(part, k));
  }

  const Layout& layout_;
  bool weight_gradient_;
  std::vector<size_t> first_block_;  // by owner, into blocks_
  std::vector<Feature> features_;
  std::vector<SentBlock> blocks_;
  std::vector<BlockWriter> writers_;
  std::vector<Piece> pieces_;
  std::vector<comm::ConstBytes> messages_;
  std::vector<size_t> message_offsets_;
  compute::Buffer chunk_memory_;
  compute::Buffer feature_memory_;  // kept lengths and intervals
  compute::Buffer dictionary_memory_;
  bool deduplicates_ = false;
  int64_t ids_sent_ = 0;
  int64_t looked_up_ = 0;
};

}  // namespace shardrec::embedding
