// Which kind of sharding each table of a plan gets: what the plan asks for, within what the table
// allows.
#pragma once

#include <cstddef>

#include "plan/cuts.h"
#include "planner/planner.h"

namespace shardrec::planner {

// Throws INVALID_ARGUMENT where the topology has none of the ranks that the table is allowed on.
void require_ranks(const Table& table, const Topology& topology, const plan::RankPool& pool);

// Never AUTO or MIXED. pool: of the table. fits_a_rank: is the table's weight within an even share?
// Throws INVALID_ARGUMENT naming the table, what it allows and what was asked for.
shardrec_sharding choose_kind(const Model& model, size_t table, const plan::RankPool& pool,
                              const PlanOptions& options, bool fits_a_rank);

}  // namespace shardrec::planner
