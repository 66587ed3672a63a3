// The rows that a sync of replicas is about: those that any of them has changed since the last one. Replicas tell each
// other theirs, and all come to the same lists.
//
// Thread rule: as the collection's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "compute/backend.h"
#include "compute/row_bits.h"
#include "embedding/collection.h"

namespace shardrec::training {

class ChangedUnion {
 public:
  // Collective over the replicas. Operations of the collection are over; backend: whose operations fetch what they have
  // noted. Throws CORRUPT_DATA and what the exchange throws.
  void gather(embedding::Collection& collection, compute::Backend& backend,
              comm::Collectives& of_replicas, const comm::Operation& operation);

  // Of a shard, as of the last gather(): are its rows moved without a list, for a list would take as many bytes?
  // Else the numbers of those that are, ascending, counted from the shard's first.
  bool whole(size_t shard) const { return rows_[shard].whole; }
  std::span<const int64_t> rows(size_t shard) const { return rows_[shard].numbers; }
  // That this rank has sent to each of the others.
  size_t message_bytes() const { return message_.size(); }

 private:
  struct Rows {
    bool whole = false;
    std::vector<int64_t> numbers;
  };

  void write(std::span<const compute::RowWord> bits, int64_t shard_rows);

  std::vector<std::byte> message_;
  std::vector<compute::RowWord> bits_;  // of a shard
  std::vector<Rows> rows_;              // by shard
};

}  // namespace shardrec::training
