// Steps 1 to 3 of the exchange on the source rank: every id is checked and written, rebased, into
// the message of each rank that owns a box of its row, by operations of the back end
// (compute/routing_operations.h). Here it is decided how long the messages are, what stands where
// in them, and what their heads say. The messages are also this rank's own memory of which bag went
// where: the output is put together and gradients are packed from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/bodies/carrier.h"
#include "comm/communicator.h"
#include "compute/backend.h"
#include "compute/buffer.h"
#include "compute/host_staging.h"
#include "compute/local_batch.h"
#include "compute/routing_operations.h"
#include "embedding/batch/batch.h"
#include "embedding/exchange/blocks_of_message.h"
#include "embedding/exchange/step_scratch.h"
#include "embedding/exchange/wire.h"
#include "embedding/tables/layout.h"

namespace shardrec::embedding {

// One block of one outgoing message.
struct SentBlock : compute::SentBags {
  uint32_t number = 0;  // among those of its owner
  int64_t rows = 0;     // in the output and gradient messages: bags, or ids of a sequence

  // Rows of the output message: of a sequence, one per different id where they travelled once.
  int64_t answers(bool sequence) const { return sequence && unique != 0 ? unique : rows; }
};

class RoutedBatch {
 public:
  // weight_gradient: option of the lookup; the intervals of pooled features are then kept too.
  RoutedBatch(const Layout& layout, bool weight_gradient, StepScratch& scratch,
              const std::shared_ptr<compute::Memory>& memory);
  RoutedBatch(const RoutedBatch&) = delete;
  RoutedBatch& operator=(const RoutedBatch&) = delete;

  // From now on, ids travel once per block where that takes fewer bytes.
  void set_deduplicates(bool deduplicates);

  // Opens the batch, reads its lengths, and writes its messages into `buffer` (nobody reads it any more).
  // Returns the verdict that went into the headers.
  Verdict route(CheckedBatch& batch, const BatchArguments& arguments, compute::Backend& backend,
                comm::MessageBuffer& buffer);

  // A batch all ids of which stay on this rank need not be waited for (compute::LocalBatch): from now on, route()
  // enqueues what it can of such batches. They are pending until settle(), which writes the message.
  void set_stays(compute::Backend& backend);
  bool is_pending() const { return is_pending_; }
  Verdict settle(CheckedBatch& batch, compute::Backend& backend, comm::MessageBuffer& buffer);
  // Of a pending batch: where lookups read it, and the word that says whether it is good.
  compute::Ids local_ids(int32_t feature) const { return {local_.ids, of(feature).writes_64}; }
  const float* local_weights() const { return local_.weights; }
  const uint32_t* local_chunk_ids(int32_t feature) const {
    return local_chunks_[static_cast<size_t>(feature)].batch_ids;
  }
  const uint32_t* local_good() const { return local_batch_->good(); }
  // Where the blocks of the message to this rank are that stayed apart from it, by record; none: in the message.
  std::span<const LocalBlock> local_blocks() const { return local_blocks_; }

  // For the headers of the next route(): ids that this rank has looked up so far.
  void set_looked_up(int64_t ids) { looked_up_ = ids; }
  int64_t looked_up() const { return looked_up_; }

  // One per rank; valid until the buffer of the last route() is written again.
  std::span<const comm::ConstBytes> messages() const { return messages_; }
  // Blocks of the message to `owner`, as Layout::blocks_of(owner).
  BlocksOfMessage<SentBlock> blocks(int owner) const {
    return {
        std::span(places_).subspan(layout_.first_block_of(owner), layout_.blocks_of(owner).size()),
        blocks_, features_.size()};
  }
  // Those that travel, in all messages.
  size_t sent_blocks() const { return blocks_.size() - features_.size(); }
  int64_t ids_sent() const { return ids_sent_; }

  // Of a feature, 0 after a bad verdict.
  int64_t ids(int32_t feature) const { return of(feature).count; }
  int64_t items(int32_t feature) const {
    return of(feature).sequence ? of(feature).count : of(feature).bags;
  }
  int64_t chunks(int32_t feature) const { return of(feature).chunks(); }
  // Bag lengths without the ids that were dropped, [samples]; in the memory of the back end.
  std::span<const uint32_t> lengths(int32_t feature) const {
    const compute::RoutedIds& f = of(feature);
    return {f.kept_lengths != nullptr ? f.kept_lengths : f.lengths, static_cast<size_t>(f.bags)};
  }
  // Where each id went: the interval of its table's routing, kDropped: nowhere. Empty: all in
  // interval 0, or not kept (the feature is pooled). In the memory of the back end.
  static constexpr int32_t kDropped = compute::kDroppedId;
  std::span<const int32_t> intervals(int32_t feature) const {
    const compute::RoutedIds& f = of(feature);
    return {f.interval_of, f.interval_of == nullptr ? 0 : static_cast<size_t>(f.count)};
  }
  // Ids outside the table's rows that were dropped or clamped.
  int64_t out_of_range(int32_t feature) const {
    return checked_[static_cast<size_t>(feature)].out_of_range;
  }

 private:
  struct Feature {
    bool keeps_intervals = false;
    compute::RowIntervals intervals;  // of its table
  };

  void find_targets(int32_t table);
  // Sizes of the features, and memory for what is remembered of them.
  void list_features(const CheckedBatch& batch);
  void place_intervals();
  // The second half of routing, of features whose ids are counted where the verdict is good.
  Verdict write(const CheckedBatch& batch, const Verdict& verdict, compute::Backend& backend,
                comm::MessageBuffer& buffer);
  // Which blocks travel.
  void place_blocks(int64_t batch_size);
  // Decides forms and places of all messages, and writes their heads.
  void lay_out(const CheckedBatch& batch, const Verdict& verdict, comm::MessageBuffer& buffer);
  void write_records(int owner, std::byte* head) const;
  size_t message_bytes(int owner) const;
  // Finds the sections of the blocks of the message that begins there, where operations see it.
  void find_sections(int owner, std::byte* message);
  void deduplicate(const comm::MessageBuffer& buffer, compute::RoutingOperations& routing,
                   compute::HostStaging* staging);
  void publish(const comm::MessageBuffer& buffer) const;
  Verdict first_verdict() const;
  void copy_local(CheckedBatch& batch, comm::MessageBuffer& buffer);
  // As find_sections(), of the blocks that have stayed.
  void find_local_blocks();
  void forget_batch();

  const compute::RoutedIds& of(int32_t feature) const {
    return routed_[static_cast<size_t>(feature)];
  }
  // Blocks of the message to an owner that travel.
  std::span<SentBlock> sent_to(int owner) {
    const auto first = first_sent_.begin() + owner;
    return std::span(blocks_).subspan(first[0], first[1] - first[0]);
  }
  std::span<const SentBlock> sent_to(int owner) const {
    const auto first = first_sent_.begin() + owner;
    return std::span(blocks_).subspan(first[0], first[1] - first[0]);
  }
  size_t index_of(const SentBlock& sent) const {
    return static_cast<size_t>(&sent - blocks_.data());
  }
  const Block& block_of(int owner, const SentBlock& sent) const {
    return layout_.blocks_of(owner)[sent.number];
  }
  BlockRecord record_of(int owner, const SentBlock& sent) const;
  bool weighted(const Block& block) const { return weighted_ && !block.sequence; }

  const Layout& layout_;
  StepScratch& scratch_;
  bool weight_gradient_;
  std::vector<size_t> first_sent_;  // by owner, into blocks_
  std::vector<Feature> features_;
  bool has_blocks_ = false;  // has the batch?
  bool weighted_ = false;    // is it?
  // By feature: what the operations are given, and what they found.
  std::vector<compute::RoutedIds> routed_;
  std::vector<compute::CheckedIds> checked_;
  std::vector<uint32_t> places_;  // by block: which of the following it has
  // By feature, what stands for its blocks that do not travel; then those that do. Sections of the scratch are as these.
  std::vector<SentBlock> blocks_;
  SparseLength no_lengths_[1] = {};  // where nothing is written
  std::vector<compute::DeduplicatedBlocks> deduplicated_;
  // By owner.
  std::vector<comm::ConstBytes> messages_;
  std::vector<std::byte*> bodies_;  // where operations see the messages
  size_t body_bytes_ = 0;           // of all of them, as they were laid out
  compute::Buffer chunk_memory_;
  compute::Buffer feature_memory_;  // kept lengths and intervals
  int32_t* interval_memory_ = nullptr;
  bool deduplicates_ = false;
  // Of batches that stay.
  bool is_pending_ = false;
  bool is_local_ = false;                             // has the batch stayed?
  std::shared_ptr<compute::LocalBatch> local_batch_;  // null: all batches are waited for
  compute::Buffer local_memory_;
  compute::LocalIds local_;
  std::vector<compute::LocalChunks> local_chunks_;  // by feature
  std::vector<LocalBlock> local_blocks_;
  int64_t ids_sent_ = 0;
  int64_t looked_up_ = 0;
};

}  // namespace shardrec::embedding
