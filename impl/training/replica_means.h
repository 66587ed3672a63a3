// The means of a collection's weights and of every optimizer state over the ranks that hold the same boxes: of all rows, or
// of those that have changed (changed_union.h), as option REPLICA_SYNC says.
//
// Rows of one type are averaged a block at a time, as they are stored (block_means.h). A block is written back when it has
// come as a whole.
//
// Thread rule: as the collection's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "compute/backend.h"
#include "compute/buffer.h"
#include "embedding/collection.h"
#include "embedding/tables/stored_pieces.h"
#include "training/block_means.h"
#include "training/changed_union.h"

namespace shardrec::training {

class ReplicaMeans {
 public:
  // replicas: the ranks that hold the same boxes; channel: of theirs, for this object alone. Throws as BlockMeans does.
  ReplicaMeans(const std::shared_ptr<comm::Communicator>& replicas,
               std::shared_ptr<comm::Channel> channel,
               std::shared_ptr<embedding::Collection> collection);
  ~ReplicaMeans();
  ReplicaMeans(const ReplicaMeans&) = delete;
  ReplicaMeans& operator=(const ReplicaMeans&) = delete;

  // Once, before the first average(). Collective over the replicas; an error ends their communicator.
  void connect(comm::Collectives& of_replicas) { blocks_.connect(of_replicas); }

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
  void write_back(const std::byte* block);
  size_t bytes_of(int64_t elements) const {
    return static_cast<size_t>(elements) * compute::element_bytes(element_);
  }

  const std::shared_ptr<embedding::Collection> collection_;
  BlockMeans blocks_;
  compute::Buffer means_;  // of a block, side by side
  ChangedUnion changed_;   // where these are averaged alone
  compute::Buffer numbers_memory_;
  std::span<int64_t> numbers_;
  // The block that is being filled.
  compute::Element element_ = compute::Element::kFloat32;
  int64_t elements_ = 0;
  size_t listed_ = 0;  // of numbers_
  std::vector<BlockRows> block_;
  std::vector<compute::RowTransfer> transfers_;  // of block_
};

}  // namespace shardrec::training
