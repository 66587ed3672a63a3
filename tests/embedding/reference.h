// The same training in float64, on one process, straight from the formulas: shares no code with the
// library.
#pragma once

#include <vector>

#include "embedding/scenario.h"

namespace shardrec::test {

struct ReferenceOutcome {
  std::vector<std::vector<std::vector<double>>> outputs;     // by step, by sample
  std::vector<std::vector<std::vector<double>>> magnitudes;  // the sums of |terms| of each output
  // Rows of the sequences, by step, sample and feature: [ids * dim].
  std::vector<std::vector<std::vector<std::vector<double>>>> sequences;
  std::vector<std::vector<double>> tables;
  std::vector<int64_t> out_of_range;  // by table: ids outside its rows
  // By table, by state: [rows * dim], or [rows] for one value per row of the whole row.
  std::vector<std::vector<std::vector<double>>> states;
  // Gradients of the ids' weights and the sums of |terms|, by step, sample and feature.
  std::vector<std::vector<std::vector<std::vector<double>>>> weight_gradients;
  std::vector<std::vector<std::vector<std::vector<double>>>> weight_magnitudes;
};

// The row that each id of a bag stands for; -1: none.
std::vector<int64_t> rows_of(const std::vector<int64_t>& bag, const TableSpec& table);

// initial: weights to start from. plan: for shard statistics, the boxes; else not read.
ReferenceOutcome reference_train(const Scenario& scenario,
                                 const std::vector<std::vector<float>>& initial,
                                 const std::vector<TablePlanSpec>& plan);

}  // namespace shardrec::test
