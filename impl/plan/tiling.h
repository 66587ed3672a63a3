// Checks on single boxes and on pairs of them, shared by adding boxes, reading plans and the proof
// of a tiling.
#pragma once

#include <span>
#include <string>

#include "plan/plan.h"

namespace shardrec::plan {

// "rows [0, 5) x columns [8, 16)"
std::string describe(const Rectangle& cells);
// The same, with " on rank 3".
std::string describe(const Box& box);

// Throws INVALID_ARGUMENT when the box is empty, leaves the table or names no rank.
void check_box(const Table& table, const Topology& topology, const Box& box);

[[noreturn]] void fail_overlap(const Table& table, const Box& a, const Box& b);

// Proves that rectangles, in the order of before(), tile the table; throws INVALID_ARGUMENT naming table and
// cell.
void check_tiled(const Table& table, std::span<const Rectangle> rectangles);
// The same of the boxes of a plan, and that they are in order and on ranks of the topology.
void check_table_tiling(const Table& table, const Topology& topology, const TablePlan& plan);

}  // namespace shardrec::plan
