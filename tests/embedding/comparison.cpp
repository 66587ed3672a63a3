#include "embedding/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/one_nan.h"

namespace shardrec::test {
namespace {

// Is the bag split over boxes of different rows?
bool split_by_rows(const TablePlanSpec& plan, const std::vector<int64_t>& rows) {
  if (plan.replicated) return false;
  for (const BoxSpec& box : plan.boxes) {
    bool some_in = false;
    bool some_out = false;
    for (const int64_t row : rows) {
      if (row < 0) continue;
      const bool in = box.row <= row && row < box.row + box.rows;
      some_in = some_in || in;
      some_out = some_out || !in;
    }
    if (some_in && some_out) return true;
  }
  return false;
}

bool cut_by_columns(const TablePlanSpec& plan, const TableSpec& table) {
  if (plan.replicated) return false;
  for (const BoxSpec& box : plan.boxes) {
    if (box.cols != table.dim) return true;
  }
  return false;
}

// How far numbers of a table may be apart where the promise is rounding only: the widths of 16 bits
// add a few of their own roundings, which may fall to the other side.
double tolerance(const TableSpec& table, double absolute, double relative, double value) {
  const double own = table.dtype == SHARDREC_BFLOAT16  ? 0x1p-5
                     : table.dtype == SHARDREC_FLOAT16 ? 0x1p-8
                                                       : 0;
  return absolute + own / 64 + (relative + own) * std::abs(value);
}

// Are the gradients of a replicated table summed by rank first?
bool summed_by_rank(const Deal& deal, size_t t) {
  return deal.ranks > 1 && deal.plan[t].replicated &&
         deal.plan[t].replication != SHARDREC_REPLICATION_SAMPLES;
}

}  // namespace

void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b,
                      const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(bits_with_one_nan(a[i]), bits_with_one_nan(b[i]))
        << what << " element " << i << ": " << a[i] << " and " << b[i];
  }
}

namespace {

void expect_same_numbers(const std::vector<float>& a, const std::vector<float>& b,
                         const TableSpec& table, bool exact, const std::string& what) {
  if (exact) {
    expect_same_bits(a, b, what);
    return;
  }
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_NEAR(a[i], b[i], tolerance(table, 2e-6, 2e-5, a[i])) << what << " element " << i;
  }
}

}  // namespace

void expect_same_run(const Outcome& a, const Outcome& b) {
  expect_same_bits(a.outputs, b.outputs, "output");
  expect_same_bits(a.sequences, b.sequences, "sequence");
  expect_same_bits(a.tables, b.tables, "table");
  expect_same_bits(a.states, b.states, "state");
}

void expect_promises(const Scenario& scenario, const Deal& deal, const Outcome& one,
                     const Outcome& many, const ReferenceOutcome& reference) {
  std::vector<bool> exact(scenario.tables.size(), true);
  for (size_t t = 0; t < scenario.tables.size(); ++t) {
    expect_same_bits(one.initial[t], many.initial[t], "initial table " + std::to_string(t));
    const OptimizerSpec& optimizer = scenario.optimizer_of(t);
    exact[t] = !(optimizer.has_sums() && cut_by_columns(deal.plan[t], scenario.tables[t])) &&
               !summed_by_rank(deal, t);
    const std::string name = "table " + std::to_string(t);
    expect_same_numbers(one.tables[t], many.tables[t], scenario.tables[t], exact[t], name);
    for (size_t k = 0; k < one.states[t].size(); ++k) {
      expect_same_numbers(one.states[t][k], many.states[t][k], scenario.tables[t], exact[t],
                          name + " state " + std::to_string(k));
    }
  }
  for (size_t s = 0; s < scenario.steps.size(); ++s) {
    for (size_t i = 0; i < scenario.steps[s].size(); ++i) {
      for (size_t f = 0; f < scenario.features.size(); ++f) {
        const auto t = static_cast<size_t>(scenario.features[f].table);
        if (scenario.features[f].sequence) {
          expect_same_numbers(one.sequences[s][i][f], many.sequences[s][i][f], scenario.tables[t],
                              exact[t], "sequence");
          continue;
        }
        const auto column = static_cast<size_t>(scenario.column(f));
        const bool split =
            split_by_rows(deal.plan[t], rows_of(scenario.steps[s][i].bags[f], scenario.tables[t]));
        for (size_t c = column; c < column + static_cast<size_t>(scenario.tables[t].dim); ++c) {
          const float a = one.outputs[s][i][c];
          const float b = many.outputs[s][i][c];
          if (!split && exact[t]) {
            ASSERT_EQ(bits_with_one_nan(a), bits_with_one_nan(b))
                << "step " << s << " sample " << i << " column " << c;
            continue;
          }
          double bound = std::ldexp(reference.magnitudes[s][i][c], -21);
          if (!exact[t]) {
            bound += 8 * tolerance(scenario.tables[t], 2e-6, 2e-5, reference.magnitudes[s][i][c]);
          }
          ASSERT_LE(std::abs(static_cast<double>(a) - b), bound)
              << "step " << s << " sample " << i << " column " << c;
        }
      }
    }
  }
}

void expect_reference(const Scenario& scenario, const Outcome& run,
                      const ReferenceOutcome& reference) {
  // The coarsest dtype of the tables is that of the outputs' comparison.
  TableSpec widest;
  for (const TableSpec& table : scenario.tables) {
    if (widest.dtype != SHARDREC_BFLOAT16 && table.dtype != SHARDREC_FLOAT32) {
      widest.dtype = table.dtype;
    }
  }
  for (size_t t = 0; t < scenario.tables.size(); ++t) {
    const auto near = [&](const std::vector<float>& values, const std::vector<double>& expected,
                          const std::string& what) {
      ASSERT_EQ(values.size(), expected.size()) << what;
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(values[i], expected[i], tolerance(scenario.tables[t], 1e-5, 2e-4, expected[i]))
            << what << " of table " << t << " element " << i;
      }
    };
    near(run.tables[t], reference.tables[t], "weights");
    for (size_t k = 0; k < run.states[t].size(); ++k) {
      near(run.states[t][k], reference.states[t][k], "state " + std::to_string(k));
    }
  }
  for (size_t s = 0; s < scenario.steps.size(); ++s) {
    for (size_t i = 0; i < scenario.steps[s].size(); ++i) {
      for (size_t c = 0; c < run.outputs[s][i].size(); ++c) {
        ASSERT_NEAR(run.outputs[s][i][c], reference.outputs[s][i][c],
                    10 * tolerance(widest, 1e-5, 2e-5, reference.magnitudes[s][i][c]))
            << "step " << s << " sample " << i << " column " << c;
      }
      for (size_t f = 0; f < scenario.features.size(); ++f) {
        const auto& expected = reference.sequences[s][i][f];
        const auto& rows = run.sequences[s][i][f];
        ASSERT_EQ(rows.size(), expected.size());
        for (size_t c = 0; c < rows.size(); ++c) {
          ASSERT_NEAR(rows[c], expected[c], tolerance(widest, 1e-5, 2e-4, expected[c]))
              << "step " << s << " sample " << i << " feature " << f << " element " << c;
        }
      }
    }
  }
}

void expect_all_promises(const Scenario& scenario, std::mt19937_64& random,
                         const Variation& variation) {
  const Deal alone = one_rank(scenario);
  const Outcome one = train(scenario, alone);
  if (::testing::Test::HasFatalFailure()) return;
  const ReferenceOutcome reference = reference_train(scenario, one.initial, alone.plan);
  if (variation.to_nearest) expect_reference(scenario, one, reference);
  if (::testing::Test::HasFatalFailure()) return;
  EXPECT_EQ(one.out_of_range, reference.out_of_range);
  for (const int ranks : world_sizes()) {
    SCOPED_TRACE("ranks " + std::to_string(ranks));
    Deal deal = random_deal(scenario, random, ranks);
    if (variation.vary) variation.vary(deal);
    const Outcome many = train(scenario, deal);
    if (::testing::Test::HasFatalFailure()) return;
    expect_promises(scenario, deal, one, many, reference);
    EXPECT_EQ(many.out_of_range, reference.out_of_range);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

void expect_promises_of_named_kinds(const Scenario& scenario, std::mt19937_64& random, int turn) {
  const Deal alone = one_rank(scenario);
  const Outcome one = train(scenario, alone);
  if (::testing::Test::HasFatalFailure()) return;
  const ReferenceOutcome reference = reference_train(scenario, one.initial, alone.plan);
  for (int kind = SHARDREC_SHARDING_AUTO; kind <= SHARDREC_SHARDING_MIXED; ++kind) {
    const int ranks = std::vector<int>{2, 3, 4, 8}[static_cast<size_t>((turn + kind) % 4)];
    SCOPED_TRACE("kind " + std::to_string(kind) + " ranks " + std::to_string(ranks));
    const Deal deal = named_deal(scenario, random, ranks, std::max(1, ranks / 2),
                                 static_cast<shardrec_sharding>(kind));
    const Outcome many = train(scenario, deal);
    if (::testing::Test::HasFatalFailure()) return;
    expect_promises(scenario, deal, one, many, reference);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace shardrec::test
