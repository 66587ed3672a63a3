#include "plan/builder.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"
#include "plan/model/names.h"
#include "plan/tiling.h"

namespace shardrec::plan {
namespace {

using core::fail;
using core::sentence;

bool box_before(const Box& a, const Box& b) { return before(a.cells, b.cells); }

std::unique_ptr<CoveredCells> covered_by(const TablePlan& plan, const Table& table) {
  auto covered = std::make_unique<CoveredCells>(table.cells());
  for (const Box& box : plan.boxes) covered->add(box.cells);
  return covered;
}

}  // namespace

PlanBuilder::PlanBuilder(PlannedModel planned)
    : planned_(std::move(planned)), tables_(planned_.plan.tables.size()) {
  for (size_t t = 0; t < tables_.size(); ++t) {
    tables_[t].in_order = planned_.plan.tables[t].boxes.size();
  }
}

const Plan& PlanBuilder::plan() {
  for (size_t t = 0; t < tables_.size() && !in_order_; ++t) put_in_order(t);
  in_order_ = true;
  return planned_.plan;
}

void PlanBuilder::add_box(int32_t table, const Box& box) {
  const size_t index = index_of(table);
  TablePlan& own = planned_.plan.tables[index];
  const Table& about = planned_.model.tables[index];
  if (own.replicated) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("table \"", about.name, "\" is replicated on all ranks; it takes no boxes"),
         {.table = about.name});
  }
  check_box(about, planned_.plan.topology, box);
  Progress& progress = tables_[index];
  if (progress.covered == nullptr) progress.covered = covered_by(own, about);
  if (progress.covered->intersects(box.cells)) {
    put_in_order(index);
    for (const Box& other : own.boxes) {
      if (!intersect(box.cells, other.cells).empty()) fail_overlap(about, other, box);
    }
  }
  own.boxes.push_back(box);
  // It is known again when this box is in it as well.
  std::unique_ptr<CoveredCells> covered = std::move(progress.covered);
  try {
    covered->add(box.cells);
  } catch (...) {
    own.boxes.pop_back();
    throw;
  }
  progress.covered = std::move(covered);
  const size_t last = own.boxes.size() - 1;
  if (progress.in_order == last && (last == 0 || box_before(own.boxes[last - 1], box))) {
    ++progress.in_order;
  } else {
    in_order_ = false;
  }
}

void PlanBuilder::replicate(int32_t table, shardrec_replication replication) {
  TablePlan& own = planned_.plan.tables[index_of(table)];
  const std::string& name = planned_.model.tables[static_cast<size_t>(table)].name;
  if (!own.boxes.empty()) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("table \"", name, "\" has ", own.boxes.size(),
                  " boxes; it cannot be replicated as well"),
         {.table = name});
  }
  if (replication == SHARDREC_REPLICATION_AUTO ||
      !value_of<shardrec_replication>(name_of(replication))) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("the replication of a table is samples, rows or dense, not ",
                  static_cast<int>(replication)),
         {.value = replication, .table = name});
  }
  own.replicated = true;
  own.replication = replication;
}

size_t PlanBuilder::index_of(int32_t table) const {
  const auto tables = static_cast<int64_t>(planned_.model.tables.size());
  if (planned_.plan.tables.size() != planned_.model.tables.size()) {
    fail(SHARDREC_INVALID_ARGUMENT, sentence("the plan is for ", planned_.plan.tables.size(),
                                             " tables, the model has ", tables));
  }
  if (table < 0 || table >= tables) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("there is no table ", table, "; the model has ", tables, " tables"),
         {.value = table, .limit = tables});
  }
  return static_cast<size_t>(table);
}

void PlanBuilder::put_in_order(size_t table) {
  std::vector<Box>& boxes = planned_.plan.tables[table].boxes;
  if (tables_[table].in_order == boxes.size()) return;
  std::sort(boxes.begin(), boxes.end(), box_before);
  tables_[table].in_order = boxes.size();
}

}  // namespace shardrec::plan
