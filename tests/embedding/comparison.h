// Compares runs: with one another by the promises of the numbers, and with the float64 reference.
// Failures are those of the current test.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "embedding/reference.h"
#include "embedding/scenario.h"

namespace shardrec::test {

// Bit by bit: 0 is not -0, and a NaN is a NaN (support/one_nan.h).
void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b,
                      const std::string& what);

// The same for lists of lists.
template <class List>
void expect_same_bits(const std::vector<List>& a, const std::vector<List>& b,
                      const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i) {
    expect_same_bits(a[i], b[i], what + " " + std::to_string(i));
  }
}

// Two ways to the same bits: those of outputs, sequences, tables and states.
void expect_same_run(const Outcome& a, const Outcome& b);

// A run on many ranks and the one-rank run: the same bits where they are promised.
void expect_promises(const Scenario& scenario, const Deal& deal, const Outcome& one,
                     const Outcome& many, const ReferenceOutcome& reference);

void expect_reference(const Scenario& scenario, const Outcome& run,
                      const ReferenceOutcome& reference);

// How expect_all_promises differs from plain training.
struct Variation {
  bool to_nearest = true;  // else the reference, which knows no other rounding, is not compared
  std::function<void(Deal& deal)> vary = {};  // changes the deals of many ranks
};

// One rank against the float64 reference, then random tilings over 1 to 8 ranks against one rank.
void expect_all_promises(const Scenario& scenario, std::mt19937_64& random,
                         const Variation& variation = {});

// Every named kind of sharding against one rank; turn: which number of ranks is whose.
void expect_promises_of_named_kinds(const Scenario& scenario, std::mt19937_64& random, int turn);

}  // namespace shardrec::test
