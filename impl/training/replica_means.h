// The means of a collection's weights and of every optimizer state over the ranks that hold the same boxes: rows go
// from back end to back end, as those of a step do (comm/bodies/carrier.h), and never change on the way. All rows, or
// those that have changed (changed_union.h), as option REPLICA_SYNC says.
//
// Rows of one type are averaged a block at a time, as they are stored. Two exchanges: every rank sends each part of the
// block to the rank that adds it up (comm/collective/owned_range.h), which sends the means to all. A block is written
// back when it has come as a whole.
//
// On a device operations are those of a back end of this object's own: other ranks wait for them, and what ends the
// replicas' communicator stops them, neither of which is so of the collection's.
//
// Thread rule: as the collection's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/bodies/carrier.h"
#include "comm/collective/collectives.h"
#include "comm/collective/owned_range.h"
#include "comm/communicator.h"
#include "compute/backend.h"
#include "compute/buffer.h"
#include "embedding/collection.h"
#include "embedding/exchange/ordered_channel.h"
#include "embedding/tables/stored_pieces.h"
#include "training/changed_union.h"

namespace shardrec::training {

class ReplicaMeans {
 public:
  // replicas: the ranks that hold the same boxes; channel: of theirs, for this object alone. Throws as the back end and
  // the carrier do.
  ReplicaMeans(const std::shared_ptr<comm::Communicator>& replicas,
               std::shared_ptr<comm::Channel> channel,
               std::shared_ptr<embedding::Collection> collection);
  ~ReplicaMeans();
  ReplicaMeans(const ReplicaMeans&) = delete;
  ReplicaMeans& operator=(const ReplicaMeans&) = delete;

  // Once, before the first average(). Collective over the replicas; an error ends their communicator.
  void connect(comm::Collectives& of_replicas) { bodies_->connect(of_replicas); }

  // Collective over the replicas. Operations of the collection's back end are over; those of this one are when it
  // returns, and no row is noted as changed. Throws CORRUPT_DATA, and what channels and operations throw.
  void average(comm::Collectives& of_replicas, const comm::Operation& operation);

 private:
  // Rows of a shard: [first, first + count), or where there are numbers, those that they say.
  struct Rows {
    int64_t first = 0;
    int64_t count = 0;
    const int64_t* numbers = nullptr;  // in numbers_
  };
  // Rows of a piece that are in the block, from element `begin` of it on.
  struct BlockRows {
    embedding::StoredPiece piece;
    Rows rows;
    int64_t begin;

    compute::RowTransfer to_block(std::byte* block) const;
    compute::RowTransfer to_table(const std::byte* block) const;
  };

  // How many rows of a shard are averaged, and whether these are fewer than all.
  int64_t averaged_rows(size_t shard) const;
  bool is_listed(size_t shard) const;
  // Room for the numbers of a block's rows.
  void make_room_for_numbers(std::span<const embedding::StoredPiece> pieces);
  void add_to_block(const embedding::StoredPiece& piece, const char* operation);
  // Exchanges the block, and begins another one.
  void average_block(const char* operation);
  std::span<const comm::ConstBytes> exchange(const char* operation,
                                             const comm::MessageBuffer& sent);
  void require_size(comm::ConstBytes part, const comm::OwnedRange& range, size_t from,
                    const char* operation) const;
  void write_back(const std::byte* block);
  size_t bytes_of(int64_t elements) const {
    return static_cast<size_t>(elements) * compute::element_bytes(element_);
  }

  const std::shared_ptr<embedding::Collection> collection_;
  const bool changed_only_;
  const int ranks_;
  const int rank_;
  size_t most_bytes_ = 0;                          // of a block, or one row that is larger
  std::unique_ptr<compute::Backend> own_backend_;  // null: there is no device
  compute::Backend* backend_ = nullptr;
  std::unique_ptr<comm::BodyCarrier> bodies_;
  std::unique_ptr<embedding::OrderedChannel> channel_;
  std::unique_ptr<comm::MessageBuffer> rows_sent_;
  std::unique_ptr<comm::MessageBuffer> means_sent_;
  std::unique_ptr<comm::ReceivedBodies> rows_received_;
  std::unique_ptr<comm::ReceivedBodies> means_received_;
  std::optional<compute::Buffer> means_;  // of a block, side by side
  ChangedUnion changed_;                  // where these are averaged alone
  compute::Buffer numbers_memory_;
  std::span<int64_t> numbers_;
  // The block that is being filled.
  compute::Element element_ = compute::Element::kFloat32;
  int64_t elements_ = 0;
  size_t listed_ = 0;  // of numbers_
  std::vector<BlockRows> block_;
  std::vector<comm::ConstBytes> messages_;       // by rank
  std::vector<const std::byte*> parts_;          // likewise
  std::vector<compute::RowTransfer> transfers_;  // of block_
};

}  // namespace shardrec::training
