// What a step costs the memory of the rank that owns a box, so that a plan can spread it.
#pragma once

#include <cstdint>

#include "compute/profile/memory_profile.h"
#include "planner/planner.h"

namespace shardrec::planner {

// Picoseconds per sample of the global batch, at least 1, that lookups and updates of whole rows of
// a table keep memory busy, if only `cols` of its columns are there: what they move (as
// memory_profile.h counts it, the optimizer's state with the updates) at the profile's rates with
// the most threads, or at one rate for all without a profile. Ids are taken for uniform.
// features: of the table.
int64_t picoseconds_per_sample(const Table& table, const Optimizer& optimizer, int64_t features,
                               int64_t cols, double bag_length,
                               const compute::MemoryProfile& profile);

}  // namespace shardrec::planner
