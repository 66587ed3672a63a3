// Helpers shared by the tests of plans.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "plan/plan.h"
#include "planner/planner.h"

namespace shardrec::plan {

using planner::make_plan;
using planner::PlanOptions;

inline Model tables_of(const std::vector<std::pair<int64_t, int64_t>>& sizes) {
  Model model;
  for (const auto& [rows, dim] : sizes) {
    add_table(model, {.name = "t" + std::to_string(model.tables.size()), .rows = rows, .dim = dim});
  }
  return model;
}

inline Model one_table(int64_t rows, int64_t dim) { return tables_of({{rows, dim}}); }

// The rank of the first box of each table.
inline std::vector<int32_t> owners(const Plan& plan) {
  std::vector<int32_t> out;
  for (const TablePlan& table : plan.tables) out.push_back(table.boxes.front().rank);
  return out;
}

// Counts the owners of each cell, one cell after the other: slow and obvious. "exactly one owner
// each", or the first cell with another number of owners.
inline std::string count_owners(const TablePlan& plan, const Table& table) {
  for (int64_t row = 0; row < table.rows; ++row) {
    for (int64_t col = 0; col < table.dim; ++col) {
      int count = 0;
      for (const Box& box : plan.boxes) {
        if (row >= box.cells.row && row < box.cells.end_row() && col >= box.cells.col &&
            col < box.cells.end_col()) {
          ++count;
        }
      }
      if (count != 1) {
        return std::to_string(count) + " owners of row " + std::to_string(row) + ", column " +
               std::to_string(col);
      }
    }
  }
  return "exactly one owner each";
}

template <class Work>
shardrec_status status_of(const Work& work, std::string* sentence = nullptr) {
  try {
    work();
  } catch (const core::Error& error) {
    if (sentence != nullptr) *sentence = error.sentence();
    return error.status();
  }
  return SHARDREC_OK;
}

}  // namespace shardrec::plan
