#include "embedding/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

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

uint32_t bits(float value) {
  uint32_t out = 0;
  std::memcpy(&out, &value, sizeof out);
  return out;
}

void expect_same_rows(const std::vector<float>& a, const std::vector<float>& b, bool exact) {
  if (exact) {
    expect_same_bits(a, b, "sequence");
    return;
  }
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 2e-6 + 2e-5 * std::abs(a[i]));
}

}  // namespace

void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b,
                      const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(bits(a[i]), bits(b[i]))
        << what << " element " << i << ": " << a[i] << " and " << b[i];
  }
}

void expect_promises(const Scenario& scenario, const Deal& deal, const Outcome& one,
                     const Outcome& many, const ReferenceOutcome& reference) {
  std::vector<bool> exact(scenario.tables.size(), true);
  for (size_t t = 0; t < scenario.tables.size(); ++t) {
    expect_same_bits(one.initial[t], many.initial[t], "initial table " + std::to_string(t));
    exact[t] = !(scenario.optimizer.adagrad && cut_by_columns(deal.plan[t], scenario.tables[t]));
    if (exact[t]) {
      expect_same_bits(one.tables[t], many.tables[t], "table " + std::to_string(t));
      expect_same_bits(one.states[t], many.states[t], "state " + std::to_string(t));
      continue;
    }
    for (size_t i = 0; i < one.tables[t].size(); ++i) {
      ASSERT_NEAR(one.tables[t][i], many.tables[t][i], 2e-6 + 2e-5 * std::abs(one.tables[t][i]));
    }
    for (size_t i = 0; i < one.states[t].size(); ++i) {
      ASSERT_NEAR(one.states[t][i], many.states[t][i], 2e-6 + 2e-5 * std::abs(one.states[t][i]));
    }
  }
  for (size_t s = 0; s < scenario.steps.size(); ++s) {
    for (size_t i = 0; i < scenario.steps[s].size(); ++i) {
      for (size_t f = 0; f < scenario.features.size(); ++f) {
        const auto t = static_cast<size_t>(scenario.features[f].table);
        if (scenario.features[f].sequence) {
          expect_same_rows(one.sequences[s][i][f], many.sequences[s][i][f], exact[t]);
          continue;
        }
        const auto column = static_cast<size_t>(scenario.column(f));
        const bool split =
            split_by_rows(deal.plan[t], rows_of(scenario.steps[s][i].bags[f], scenario.tables[t]));
        for (size_t c = column; c < column + static_cast<size_t>(scenario.tables[t].dim); ++c) {
          const float a = one.outputs[s][i][c];
          const float b = many.outputs[s][i][c];
          if (!split && exact[t]) {
            ASSERT_EQ(bits(a), bits(b)) << "step " << s << " sample " << i << " column " << c;
            continue;
          }
          double bound = std::ldexp(reference.magnitudes[s][i][c], -21);
          if (!exact[t]) bound += (2e-6 + 2e-5 * std::abs(a)) * 8;
          ASSERT_LE(std::abs(static_cast<double>(a) - b), bound)
              << "step " << s << " sample " << i << " column " << c;
        }
      }
    }
  }
}

void expect_reference(const Scenario& scenario, const Outcome& run,
                      const ReferenceOutcome& reference) {
  for (size_t t = 0; t < scenario.tables.size(); ++t) {
    for (size_t i = 0; i < run.tables[t].size(); ++i) {
      ASSERT_NEAR(run.tables[t][i], reference.tables[t][i],
                  1e-5 + 2e-4 * std::abs(reference.tables[t][i]))
          << "table " << t << " element " << i;
    }
    for (size_t i = 0; i < run.states[t].size(); ++i) {
      ASSERT_NEAR(run.states[t][i], reference.states[t][i],
                  1e-5 + 2e-4 * std::abs(reference.states[t][i]))
          << "state of table " << t << " element " << i;
    }
  }
  for (size_t s = 0; s < scenario.steps.size(); ++s) {
    for (size_t i = 0; i < scenario.steps[s].size(); ++i) {
      for (size_t c = 0; c < run.outputs[s][i].size(); ++c) {
        ASSERT_NEAR(run.outputs[s][i][c], reference.outputs[s][i][c],
                    1e-4 + 2e-4 * reference.magnitudes[s][i][c])
            << "step " << s << " sample " << i << " column " << c;
      }
      for (size_t f = 0; f < scenario.features.size(); ++f) {
        const auto& expected = reference.sequences[s][i][f];
        const auto& rows = run.sequences[s][i][f];
        ASSERT_EQ(rows.size(), expected.size());
        for (size_t c = 0; c < rows.size(); ++c) {
          ASSERT_NEAR(rows[c], expected[c], 1e-5 + 2e-4 * std::abs(expected[c]))
              << "step " << s << " sample " << i << " feature " << f << " element " << c;
        }
      }
    }
  }
}

}  // namespace shardrec::test
