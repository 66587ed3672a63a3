// One optimizer step of one row in float64, straight from the formulas: shares no code with the
// library.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "embedding/scenario.h"

namespace shardrec::test {

// The columns of a row over which sums are taken together.
struct ReferenceRow {
  shardrec_dtype dtype = SHARDREC_FLOAT32;  // what the weights are rounded to, to nearest
  std::span<double> weights;
  std::span<const double> gradient;
  std::array<std::span<double>, 2> states = {};  // a state of one value per row: each element
};

// update: 1, 2, ...
void reference_step(const OptimizerSpec& optimizer, int64_t update, const ReferenceRow& row);

}  // namespace shardrec::test
