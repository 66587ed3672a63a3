// The input messages of one batch as the owner of parts sees them, checked and cut into blocks:
// their heads here, their bodies by operations of the back end (compute/routing_operations.h). The
// ids stay where they arrived, but for those that travelled as codes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/bodies/carrier.h"
#include "comm/communicator.h"
#include "compute/backend.h"
#include "compute/buffer.h"
#include "embedding/exchange/blocks_of_message.h"
#include "embedding/exchange/step_scratch.h"
#include "embedding/exchange/wire.h"
#include "embedding/tables/layout.h"

namespace shardrec::embedding {

// One block from one source.
struct ReceivedBlock : compute::Bags {
  int64_t rows = 0;          // in the output and gradient messages: bags, or ids of a sequence
  int64_t first_sample = 0;  // number of the first one among those that the part takes ids from
  compute::Ids id_data;
  // Where different ids travelled once: them. id_data is made from them.
  int64_t unique = 0;
  compute::Ids unique_ids;
  const float* weights = nullptr;  // null: all 1

  // Rows of the output message: of a sequence, one per different id where they travelled once.
  int64_t answers(bool sequence) const { return sequence && unique != 0 ? unique : rows; }
};

class Inbox {
 public:
  Inbox(const Layout& layout, comm::BodyCarrier& bodies, StepScratch& scratch);

  // Reads the heads, cuts the messages and has their bodies checked. Throws CORRUPT_DATA, naming
  // the rank, when a message does not hold what it says. After a bad verdict there are no blocks.
  // The messages stay where they are for as long as the blocks are used. local: of this rank's own message, by
  // record, the blocks that are not in its body; empty: all are.
  void open(std::span<const comm::ConstBytes> messages, std::span<const LocalBlock> local = {});

  // The lowest rank whose batch was refused; -1: none.
  int refused_rank() const { return refused_; }
  const Verdict& verdict(int rank) const { return headers_[static_cast<size_t>(rank)].verdict; }
  bool all_done() const { return all_done_; }
  // Ids that the source had looked up when it sent this batch.
  int64_t looked_up(int source) const { return headers_[static_cast<size_t>(source)].looked_up; }
  // The lowest rank whose lookup has other options than rank 0's; -1: none. The same on all ranks.
  int differing_rank() const { return differing_; }

  // Samples of all ranks, and of those of the own sharding group.
  int64_t global_batch() const { return global_batch_; }
  int64_t group_batch() const { return group_batch_; }
  // Most samples that a feature of the rank's blocks has on all ranks together.
  int64_t most_samples() const { return most_samples_; }

  // As Layout::blocks_of(own rank). Of a block without ids, first_sample is not told.
  BlocksOfMessage<ReceivedBlock> blocks(int source) const {
    return {std::span(places_).subspan(static_cast<size_t>(source) * per_source_, per_source_),
            blocks_, empty_blocks_};
  }
  // Of all sources together: those that have a place of their own, and those of them that have ids.
  size_t present_blocks() const { return blocks_.size() - empty_blocks_; }
  size_t blocks_with_ids() const { return blocks_with_ids_; }
  bool weighted() const { return weighted_; }
  int64_t ids_received() const { return ids_received_; }

 private:
  void read_header(int source, comm::ConstBytes message);
  int64_t samples_of(int source) const {
    const InputHeader& header = headers_[static_cast<size_t>(source)];
    return header.has_blocks != 0 ? header.batch_size : 0;
  }
  // Makes room for what the records say.
  void count_records(std::span<const comm::ConstBytes> messages);
  size_t head_bytes(int source) const { return input_head_bytes(records_of(source)); }
  size_t records_of(int source) const {
    const InputHeader& header = headers_[static_cast<size_t>(source)];
    return header.has_blocks != 0 ? header.records : 0;
  }
  // Returns what is wrong with the message, null for nothing. The blocks before it are cut.
  const char* cut(int source, comm::ConstBytes message, comm::ConstBytes body,
                  std::span<const LocalBlock> local);
  // The block of a record, without what is in the body; null: the record is absurd.
  ReceivedBlock* add_block(const BlockRecord& record);
  const char* cut_block(int source, const BlockRecord& record, comm::ConstBytes body, size_t& at);
  const char* take_local(const BlockRecord& record, const LocalBlock& local);
  void check_bags();
  void expand();

  const Layout& layout_;
  compute::Backend& backend_;
  StepScratch& scratch_;
  bool checks_bags_;  // of other ranks
  std::unique_ptr<comm::ReceivedBodies> received_;
  std::vector<size_t> heads_;  // by source, bytes
  size_t per_source_;
  std::vector<InputHeader> headers_;
  int64_t global_batch_ = 0;
  int64_t group_batch_ = 0;
  int64_t most_samples_ = 0;
  std::vector<uint32_t> places_;  // by source, then own block: which of blocks_
  // What stands for blocks that have no records, one for neighbours with as many samples; then those that have.
  std::vector<ReceivedBlock> blocks_;
  size_t empty_blocks_ = 0;
  uint32_t next_empty_ = 0;           // of the message that is cut
  std::vector<int64_t> next_sample_;  // by own block, while messages are cut
  std::vector<uint8_t> of_group_;     // by own block: is nothing of other sharding groups for it?
  // Blocks whose ids are codes: their place in blocks_, their source, what they are made of, what was wrong.
  std::vector<size_t> coded_blocks_;
  std::vector<int> coded_source_;
  std::vector<compute::CodedIds> coded_;
  std::vector<compute::WrongInteger> wrong_codes_;
  compute::Buffer ids_memory_;
  int refused_ = -1;
  int differing_ = -1;
  bool all_done_ = false;
  bool weighted_ = false;
  int64_t ids_received_ = 0;
  size_t blocks_with_ids_ = 0;
};

}  // namespace shardrec::embedding
