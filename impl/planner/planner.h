// Makes plans: cuts every table and places the boxes.
#pragma once

#include <cstdint>

#include "plan/model/model.h"
#include "plan/plan.h"
#include "shardrec/options.h"

namespace shardrec::planner {

using plan::Box;
using plan::Feature;
using plan::Model;
using plan::Optimizer;
using plan::Plan;
using plan::Table;
using plan::TablePlan;
using plan::Topology;

struct PlanOptions {
  shardrec_sharding sharding = SHARDREC_SHARDING_AUTO;
  shardrec_replication replication = SHARDREC_REPLICATION_AUTO;
  int64_t batch_size = 0;  // samples per rank and step; 0: unknown
  double bag_length = 1;   // ids per bag
  shardrec_balance balance = SHARDREC_BALANCE_BYTES;
  // Of a mesh for whose sharding groups the plan is, all ranks: they keep replicated tables in step together, so that
  // AUTO and MIXED replicate only what may not be cut. 0: no mesh.
  int32_t mesh_ranks = 0;
};

// Cuts and places every table as capi's plan.h says of the kind, within what the tables allow.
// Throws INVALID_ARGUMENT where a table does not allow what is asked for. Reads the machine's profile when time is to
// be balanced.
Plan make_plan(const Model& model, const Topology& topology, const PlanOptions& options);
inline Plan make_plan(const Model& model, const Topology& topology, shardrec_sharding sharding) {
  return make_plan(model, topology, PlanOptions{.sharding = sharding});
}

}  // namespace shardrec::planner
