// The body of shardrec_plan_collective and shardrec_plan_collective_on_mesh.
#pragma once

#include "model_object.h"
#include "plan/together.h"

namespace shardrec::capi {

// plan::plan_together of the handles. What one rank gets wrong in its arguments, every rank gets as
// its error.
void plan_together(const plan::Planners& planners, const shardrec_model* model,
                   const shardrec_options* options, shardrec_plan** out);

}  // namespace shardrec::capi
