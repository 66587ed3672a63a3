// The same training in float64, on one process, straight from the formulas: shares no code with the
// library.
#pragma once

#include <vector>

#include "embedding/scenario.h"

namespace shardrec::test {

struct ReferenceOutcome {
  std::vector<std::vector<std::vector<double>>> outputs;     // by step, by sample
  std::vector<std::vector<std::vector<double>>> magnitudes;  // the sums of |terms| of each output
  std::vector<std::vector<double>> tables;
  std::vector<std::vector<double>> states;  // [rows], or [rows * dim] for shard statistics
};

// initial: weights to start from. plan: for shard statistics, the boxes; else not read.
ReferenceOutcome reference_train(const Scenario& scenario,
                                 const std::vector<std::vector<float>>& initial,
                                 const std::vector<TablePlanSpec>& plan);

}  // namespace shardrec::test
