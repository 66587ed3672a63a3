// Shapes of meshes, and deals of a scenario on them, with what a batch may be in varied at random.
#pragma once

#include <random>
#include <string>

#include "embedding/scenario.h"
#include "embedding/variations.h"

namespace shardrec::test {

struct MeshShape {
  int world;
  int group;
  shardrec_placement placement = SHARDREC_PLACEMENT_INTRA_NODE_SYNC;
};

struct NamedOptimizer {
  const char* name;
  shardrec_optimizer kind;
};

inline std::string name_of(const MeshShape& shape) {
  const bool together = shape.placement == SHARDREC_PLACEMENT_INTRA_NODE_SHARD;
  return std::to_string(shape.world) + "Over" + std::to_string(shape.group) +
         (together ? "Together" : "");
}

inline Deal random_mesh_deal(const Scenario& made, std::mt19937_64& random,
                             const MeshShape& shape) {
  Deal deal = random_deal(made, random, shape.group);
  deal.replicas = shape.world / shape.group;
  deal.placement = shape.placement;
  deal.share = random_deal(made, random, shape.world).share;
  deal.deduplicate = random() % 2 == 0;
  if (random() % 3 == 0) deal.form = BatchForm::kVariableIdentity;
  if (random() % 3 == 0) deal.form = BatchForm::kVariableUnique;
  deal.weight_gradient = deal.form != BatchForm::kVariableUnique && random() % 3 == 0;
  if (random() % 3 == 0) deal.forward_compression = SHARDREC_COMPRESSION_BFLOAT16;
  if (random() % 3 == 0) deal.backward_compression = SHARDREC_COMPRESSION_FLOAT16;
  return deal;
}

}  // namespace shardrec::test
