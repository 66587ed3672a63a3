// The body of shardrec_plan_collective.
#pragma once

#include "objects/comm_object.h"
#include "objects/model_object.h"
#include "planner/together.h"

namespace shardrec::capi {

// planner::plan_together of the handles. What one rank gets wrong in its arguments, every rank gets as
// its error.
void plan_together(const Use<shardrec_comm>& comm, shardrec_mesh* mesh, const shardrec_model* model,
                   const shardrec_options* options, shardrec_plan** out);

}  // namespace shardrec::capi
