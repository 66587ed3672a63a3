// How replicated tables keep in step, by the bytes it sends.
#pragma once

#include "plan/plan.h"

namespace shardrec::plan {

// Bytes that a rank sends per step to keep a replicated table in step; replication is not AUTO.
double replication_bytes(const Model& model, size_t table, int32_t ranks,
                         shardrec_replication replication, const PlanOptions& expected);

// The option's choice; AUTO: the least bytes, SAMPLES where they are equal or the batch is unknown.
shardrec_replication choose_replication(const Model& model, size_t table, int32_t ranks,
                                        const PlanOptions& options);

}  // namespace shardrec::plan
