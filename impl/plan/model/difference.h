// Two ranks that bring different models are told where: the first difference, as an error.
#pragma once

#include "core/error.h"
#include "plan/model/model.h"

namespace shardrec::plan {

// DISAGREEMENT, naming the rank of `other`, the table or feature, and both values. reference: the model
// of rank 0. The two have different fingerprints.
core::Error first_difference(const Model& reference, const Model& other, int other_rank);

}  // namespace shardrec::plan
