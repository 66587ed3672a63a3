// A collection goes on with the tables that its ranks have trained in an earlier group, whose communicator may be dead:
// those that are left after some of its replicas were lost, or those of them that others join.
//
// Thread rule: as the collections'.
#pragma once

#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "embedding/collection.h"

namespace shardrec::training {

// What this rank brings.
struct EarlierTables {
  embedding::Collection* tables = nullptr;  // null: nothing
  bool in_step = true;                      // were their replicas equal?
};

struct ContinuedRanks {
  comm::Collectives& all;
  comm::Collectives* replicas;  // those that hold the same boxes; null: there is one replica
};

// Collective over all ranks. A sharding group is whole where each of its ranks brings tables, and these are of one state
// of the model: after the same step, sync and write. Where all groups are whole and at the same step, each rank gets
// the tables that it brings; else all get those of the whole group with the highest step. With them go the number of steps and the training
// settings; no gradient waits for its step. True: the replicas are equal now.
// Throws, on all ranks alike, INVALID_ARGUMENT and DISAGREEMENT (a rank brings tables of another model, plan or place
// in it), INVALID_STATE (no group is whole); and what copies and exchanges throw, after which the tables are filled in part.
bool continue_tables(embedding::Collection& to, const EarlierTables& from,
                     const ContinuedRanks& ranks, const comm::Operation& operation);

}  // namespace shardrec::training
