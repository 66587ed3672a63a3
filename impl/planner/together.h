// Planning by all ranks together: every rank brings its model and its options, rank 0 plans, and
// every rank gets that plan. Needed because the plan of one rank may read its machine's profile.
#pragma once

#include <cstdint>

#include "comm/collective/collectives.h"
#include "core/function_ref.h"
#include "planner/planner.h"

namespace shardrec::planner {

// Who plans, and for which ranks.
struct Planners {
  // Operations on the collectives' channel have numbers (comm::Operation::kind): the planning uses
  // kOperations of them, from first_operation.
  static constexpr uint32_t kOperations = 6;

  comm::Collectives& collectives;  // of all who get the plan
  uint32_t first_operation = 0;
  int rank = 0;  // this rank's, among those of the collectives
};

// What a rank brings.
struct PlanRequest {
  Model model;
  PlanOptions options;
  // As this rank sees the plan's ranks: those of the communicator, or of its sharding group. Where
  // ranks see different ranks_per_node, the plan has one rank per node.
  Topology topology{};
};

// Collective. request() and then, once the plan is there, ready() are called on every rank; what
// either throws on one rank is every rank's error. Throws DISAGREEMENT, naming the lowest rank that
// differs from rank 0 and the first difference; the communicator lives on.
plan::PlannedModel plan_together(const Planners& planners, core::FunctionRef<PlanRequest()> request,
                                 core::FunctionRef<void()> ready);

}  // namespace shardrec::planner
