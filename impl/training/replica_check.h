// Compares the copies of a collection's tables: of cut tables those of the replicas, of replicated tables those of all
// ranks; weights and every optimizer state, by hashes of 64 bits (row_hashes.h).
//
// Thread rule: as the collection's.
#pragma once

#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "embedding/collection.h"

namespace shardrec::training {

struct ComparedRanks {
  comm::Collectives& all;       // who makes the call
  comm::Collectives* replicas;  // ... and holds the same boxes; null: nobody else does
};

// Collective over all ranks. Operations of the collection are over. Where copies differ, every rank throws
// comm::AgreedError (DISAGREEMENT) with the first table that differs, the first of its rows that does, and a rank of
// `all` whose row is another one than that of replica 0, or of rank 0 where the table is replicated. Throws CORRUPT_DATA, and what
// copies and exchanges throw.
void check_equal(embedding::Collection& collection, const ComparedRanks& ranks,
                 const comm::Operation& operation);

}  // namespace shardrec::training
