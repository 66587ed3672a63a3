// Checks on single boxes and on pairs of them, shared by adding boxes, reading plans and the proof
// of a tiling.
#pragma once

#include <string>

#include "plan/plan.h"

namespace shardrec::plan {

// "rows [0, 5) x columns [8, 16) on rank 3"
std::string describe(const Box& box);

// Throws INVALID_ARGUMENT when the box is empty, leaves the table or names no rank.
void check_box(const Table& table, const Topology& topology, const Box& box);

bool overlap(const Box& a, const Box& b) noexcept;

[[noreturn]] void fail_overlap(const Table& table, const Box& a, const Box& b);

// Proves that the boxes tile the table; throws INVALID_ARGUMENT naming table and cell. O(n log n).
void check_table_tiling(const Table& table, const Topology& topology, const TablePlan& plan);

}  // namespace shardrec::plan
