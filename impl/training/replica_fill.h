// Fills the replicas of a collection from one of them.
//
// Thread rule: as the collection's.
#pragma once

#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "embedding/collection.h"

namespace shardrec::training {

// Collective over the replicas, the ranks that hold the same boxes. Operations of the collection are over. All of them
// get, bit for bit, the tables of replica `from` with every optimizer state, its number of steps and its training settings; no row
// is noted as changed; gradients that wait for their step are dropped, and batches between forward and backward. Throws what copies and exchanges throw; tables may be
// filled in part then.
void fill_replicas(embedding::Collection& collection, comm::Collectives& replicas, int from,
                   const comm::Operation& operation);

}  // namespace shardrec::training
