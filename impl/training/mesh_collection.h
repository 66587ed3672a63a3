// Making a collection on a mesh: every sharding group makes a replica, and all of them agree.
#pragma once

#include <memory>

#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "embedding/collection.h"
#include "plan/model/model.h"
#include "plan/plan.h"

namespace shardrec::training {

// Who makes it.
struct MeshRanks {
  comm::Collectives& ranks;  // all ranks of the mesh
  comm::Operation operation;
  std::shared_ptr<comm::Communicator> world;     // the same ranks
  std::shared_ptr<comm::Communicator> sharding;  // this rank's sharding group
  embedding::ShardingGroups groups;
};

// Collective over the mesh. Where a table is replicated, or the option REPLICA_SYNC is EXACT or SHARDED, and there are several
// sharding groups, the collection is of all of them, which take steps together; else it is of this rank's. Throws
// DISAGREEMENT (ranks bring different models, plans or options), OUT_OF_MEMORY and what a collection's constructor
// throws, the same on every rank. An error of one rank alone ends the mesh.
std::shared_ptr<embedding::Collection> make_collection(const MeshRanks& mesh,
                                                       const plan::Model& model,
                                                       const plan::Plan& plan,
                                                       const embedding::CollectionOptions& options);

}  // namespace shardrec::training
