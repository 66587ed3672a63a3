// Boxes and replicated tables of plans that tests fill by hand.
#pragma once

#include <cstdint>

#include "plan/builder.h"

namespace shardrec::plan {

// Throws INVALID_ARGUMENT and leaves the plan as it was.
inline void add_box(Plan& plan, const Model& model, int32_t table, const Box& box) {
  PlanBuilder builder({.model = model, .plan = plan});
  builder.add_box(table, box);
  plan = builder.plan();
}

inline void replicate(Plan& plan, const Model& model, int32_t table,
                      shardrec_replication replication) {
  PlanBuilder builder({.model = model, .plan = plan});
  builder.replicate(table, replication);
  plan = builder.plan();
}

}  // namespace shardrec::plan
