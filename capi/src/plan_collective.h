// The body of shardrec_plan_collective: every rank brings its model, rank 0 plans.
#pragma once

#include "comm_object.h"
#include "model_object.h"

namespace shardrec::capi {

// Collective. What one rank gets wrong in its arguments, every rank gets as its error. Throws
// MISMATCH, naming the lowest rank that differs from rank 0 and the first difference; the
// communicator lives on.
void plan_together(Comm& comm, const shardrec_model* model, const shardrec_options* options,
                   shardrec_plan** out);

}  // namespace shardrec::capi
