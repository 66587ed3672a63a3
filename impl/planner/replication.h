// Which way of keeping replicated tables in step sends the fewest bytes.
#pragma once

#include <cstdint>

#include "planner/planner.h"

namespace shardrec::planner {

// Bytes that a rank sends per step to keep a replicated table in step; replication is not AUTO.
double replication_bytes(const Model& model, size_t table, int32_t ranks,
                         shardrec_replication replication, const PlanOptions& expected);

// The option's choice; AUTO: the least bytes, SAMPLES where they are equal, the batch is unknown or
// the table has too many rows for slots.
shardrec_replication choose_replication(const Model& model, size_t table, int32_t ranks,
                                        const PlanOptions& options);

}  // namespace shardrec::planner
