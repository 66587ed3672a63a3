#include "plan/tiling.h"

#include <vector>

#include "core/error.h"

namespace shardrec::plan {

namespace {

using core::fail;
using core::sentence;

[[noreturn]] void fail_missing(const Table& table, int64_t row, int64_t col) {
  fail(SHARDREC_INVALID_ARGUMENT,
       sentence("no box owns row ", row, ", column ", col, " of table \"", table.name,
                "\"; every cell needs exactly one owner, or the table is replicated"),
       {.table = table.name});
}

[[noreturn]] void fail_shared(const Table& table, const std::string& a, const std::string& b) {
  fail(SHARDREC_INVALID_ARGUMENT,
       sentence("two boxes of table \"", table.name, "\" overlap: ", a, " and ", b),
       {.table = table.name});
}

void check_inside(const Table& table, const Rectangle& cells) {
  if (table.cells().contains(cells)) return;
  fail(SHARDREC_INVALID_ARGUMENT,
       sentence("a box of ", cells.rows, " rows from row ", cells.row, " and ", cells.cols,
                " columns from column ", cells.col, " is empty or leaves table \"", table.name,
                "\" (", table.rows, " rows, ", table.dim, " columns)"),
       {.table = table.name});
}

}  // namespace

std::string describe(const Rectangle& cells) {
  return sentence("rows [", cells.row, ", ", cells.end_row(), ") x columns [", cells.col, ", ",
                  cells.end_col(), ")");
}

std::string describe(const Box& box) {
  return sentence(describe(box.cells), " on rank ", box.rank);
}

void check_box(const Table& table, const Topology& topology, const Box& box) {
  check_inside(table, box.cells);
  if (box.rank < 0 || box.rank >= topology.ranks) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("a box of table \"", table.name, "\" names rank ", box.rank, "; the plan has ",
                  topology.ranks, " ranks"),
         {.value = box.rank, .limit = topology.ranks, .table = table.name});
  }
}

void fail_overlap(const Table& table, const Box& a, const Box& b) {
  fail_shared(table, describe(a), describe(b));
}

void check_tiled(const Table& table, std::span<const Rectangle> rectangles) {
  for (const Rectangle& cells : rectangles) check_inside(table, cells);
  const auto fault = find_tiling_fault(table.cells(), rectangles);
  if (!fault) return;
  if (!fault->overlap) fail_missing(table, fault->row, fault->col);
  fail_shared(table, describe(rectangles[fault->first]), describe(rectangles[fault->second]));
}

void check_table_tiling(const Table& table, const Topology& topology, const TablePlan& plan) {
  if (plan.replicated) {
    if (plan.boxes.empty()) return;
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("table \"", table.name,
                  "\" is replicated and has boxes; it takes one or the other"),
         {.table = table.name});
  }
  std::vector<Rectangle> cells;
  cells.reserve(plan.boxes.size());
  for (size_t i = 0; i < plan.boxes.size(); ++i) {
    check_box(table, topology, plan.boxes[i]);
    cells.push_back(plan.boxes[i].cells);
    if (i > 0 && before(cells[i], cells[i - 1])) {
      fail(SHARDREC_INVALID_ARGUMENT,
           sentence("the boxes of table \"", table.name, "\" are not ordered by row and column: ",
                    describe(plan.boxes[i]), " comes behind ", describe(plan.boxes[i - 1])),
           {.table = table.name});
    }
  }
  const auto fault = find_tiling_fault(table.cells(), cells);
  if (!fault) return;
  if (!fault->overlap) fail_missing(table, fault->row, fault->col);
  fail_overlap(table, plan.boxes[fault->first], plan.boxes[fault->second]);
}

void check_tiling(const Plan& plan, const Model& model) {
  check_topology(plan.topology);
  if (plan.tables.size() != model.tables.size()) {
    fail(SHARDREC_INVALID_ARGUMENT, sentence("the plan is for ", plan.tables.size(),
                                             " tables, the model has ", model.tables.size()));
  }
  for (size_t i = 0; i < plan.tables.size(); ++i) {
    check_table_tiling(model.tables[i], plan.topology, plan.tables[i]);
  }
}

}  // namespace shardrec::plan
