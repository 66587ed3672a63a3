// The body of shardrec_plan_collective and shardrec_plan_collective_on_mesh: every rank brings its
// model, rank 0 plans.
#pragma once

#include "comm_object.h"
#include "model_object.h"

namespace shardrec::capi {

// Who plans, and for which ranks.
struct Planners {
  comm::Collectives& collectives;  // of all who get the plan
  int rank = 0;                    // among them
  // As this rank sees the plan's ranks: those of the communicator, or of its sharding group. Where
  // ranks see different ranks_per_node, the plan has one rank per node.
  plan::Topology topology{};
  bool on_mesh = false;
};

// Collective. What one rank gets wrong in its arguments, every rank gets as its error. Throws
// MISMATCH, naming the lowest rank that differs from rank 0 and the first difference; the
// communicator lives on.
void plan_together(const Planners& planners, const shardrec_model* model,
                   const shardrec_options* options, shardrec_plan** out);

}  // namespace shardrec::capi
