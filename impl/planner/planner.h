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
  bool on_mesh = false;  // a mesh holds no replicated tables
};

// Cuts and places every table as capi's plan.h says of the kind, within what the tables allow.
// Throws INVALID_ARGUMENT where a table does not allow what is asked for, UNSUPPORTED where a mesh
// does not. Reads the machine's profile when time is to be balanced.
Plan make_plan(const Model& model, const Topology& topology, const PlanOptions& options);
inline Plan make_plan(const Model& model, const Topology& topology, shardrec_sharding sharding) {
  return make_plan(model, topology, PlanOptions{.sharding = sharding});
}

}  // namespace shardrec::planner
