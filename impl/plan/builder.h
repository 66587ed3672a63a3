// A plan with its model, to which boxes are added one at a time and in any order. n boxes take n log n time in
// all: they are put in order when the plan is looked at, and each is held against the others by the cells that
// those cover (covered_cells.h).
//
// Thread rule: one thread at a time. A call that throws leaves the plan as it was.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plan/covered_cells.h"
#include "plan/plan.h"

namespace shardrec::plan {

class PlanBuilder {
 public:
  // What was planned so far.
  explicit PlanBuilder(PlannedModel planned);

  const Model& model() const { return planned_.model; }
  // Boxes that are added later show at the next call only.
  const Plan& plan();

  // Throws INVALID_ARGUMENT.
  void add_box(int32_t table, const Box& box);
  // Of a table that is replicated already, sets the way. Throws INVALID_ARGUMENT.
  void replicate(int32_t table, shardrec_replication replication);

 private:
  // Of a table.
  struct Progress {
    size_t in_order = 0;  // boxes; those behind them are as they were added
    // By the table's boxes; null: not known.
    std::unique_ptr<CoveredCells> covered;
  };

  size_t index_of(int32_t table) const;
  void put_in_order(size_t table);

  PlannedModel planned_;
  std::vector<Progress> tables_;
  bool in_order_ = true;  // the boxes of all tables
};

}  // namespace shardrec::plan
