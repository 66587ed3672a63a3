// The rows that a sync of replicas is about: those that any of them has changed since the last one. Replicas tell each
// other theirs, and all come to the same bits, which are the collection's (embedding::ChangedRows).
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
#include "compute/booked_memory.h"
#include "compute/buffer.h"
#include "compute/row_bits.h"
#include "embedding/collection.h"

namespace shardrec::training {

class ChangedUnion {
 public:
  // Messages are counted in `booked`.
  explicit ChangedUnion(compute::BookedBytes booked);

  // Collective over the replicas; nothing where all rows are averaged. Operations of the collection are over; backend:
  // whose operations fetch what they have noted. Throws CORRUPT_DATA and what the exchange throws.
  void gather(embedding::Collection& collection, compute::Backend& backend,
              comm::Collectives& of_replicas, const comm::Operation& operation);

  // Rows of a shard that a sync averages: those that have changed, as of the last gather(), or all (option REPLICA_SYNC).
  // None of a replicated table, which is equal on all ranks of the mesh after every step.
  int64_t averaged_rows(embedding::Collection& collection, size_t shard) const;

 private:
  // Tells the others of these rows, and adds theirs. The number of words is the same on all replicas. Returns the bytes
  // that went to others.
  int64_t exchange(std::span<compute::RowWord> words, comm::Collectives& of_replicas,
                   const comm::Operation& operation);

  compute::Buffer message_;
  std::vector<int64_t> counts_;  // by shard
};

}  // namespace shardrec::training
