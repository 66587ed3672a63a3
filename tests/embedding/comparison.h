// Compares runs: with one another by the promises of the numbers, and with the float64 reference.
// Failures are those of the current test.
#pragma once

#include <string>
#include <vector>

#include "embedding/reference.h"
#include "embedding/scenario.h"

namespace shardrec::test {

void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b,
                      const std::string& what);

// A run on many ranks and the one-rank run: the same bits where they are promised.
void expect_promises(const Scenario& scenario, const Deal& deal, const Outcome& one,
                     const Outcome& many, const ReferenceOutcome& reference);

void expect_reference(const Scenario& scenario, const Outcome& run,
                      const ReferenceOutcome& reference);

}  // namespace shardrec::test
