// The table of optimizers (compute/optimizer.h) beside what the library does: each is trained one step through the
// C API, and keeps the states that its row says.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "compute/optimizer.h"
#include "shardrec/shardrec.hpp"

namespace shardrec::test {
namespace {

using compute::kOptimizers;
using compute::OptimizerFacts;

constexpr int64_t kRows = 6;
constexpr int64_t kDim = 4;

// What one step of a table leaves behind; throws what making the optimizer throws.
struct Trained {
  explicit Trained(const OptimizerFacts& facts,
                   shardrec_weight_decay decay = SHARDREC_WEIGHT_DECAY_NONE) {
    run(1, [&](Comm& comm) {
      Model model;
      model.set_optimizer(OptimizerOptions().optimizer(facts.optimizer).weight_decay_mode(decay));
      model.add_feature(model.add_table("t", kRows, kDim), "f");
      const auto plan = Plan::collective(comm, model);
      Collection tables(comm, model, plan);
      Lookup step(tables);
      const std::vector<int64_t> ids{1, 4};
      const std::vector<int32_t> lengths{1, 1};
      std::vector<float> out(2 * kDim);
      step.begin(2, ids, lengths);
      step.forward(0, {out.data(), 2, kDim});
      const std::vector<float> gradient(2 * kDim, 0.5F);
      step.set_gradient(0, {gradient.data(), 2, kDim});
      step.backward();
      for (const shardrec_table_part part : {SHARDREC_TABLE_STATE, SHARDREC_TABLE_STATE_2}) {
        std::vector<float> values(kRows * kDim, -1);
        for (const int64_t width : {kDim, int64_t{1}}) {
          try {
            tables.read_range(0, part, 0, kRows, {values.data(), kRows, width});
          } catch (const Error&) {
            continue;
          }
          widths.push_back(width);
          values.resize(static_cast<size_t>(kRows * width));
          states.push_back(values);
          break;
        }
      }
    });
  }
  std::vector<int64_t> widths;  // of the states that there are
  std::vector<std::vector<float>> states;
};

TEST(Optimizers, OfTablesKeepTheStatesOfTheirRow) {
  for (const OptimizerFacts& facts : kOptimizers) {
    SCOPED_TRACE(facts.name);
    if (!facts.of_tables) {
      EXPECT_THROW(Trained{facts}, Error);
      continue;
    }
    const Trained trained(facts);
    ASSERT_EQ(trained.states.size(), facts.state_count());
    for (size_t s = 0; s < facts.state_count(); ++s) {
      const int64_t width = trained.widths[s];
      EXPECT_EQ(width, facts.states[s].by_row ? 1 : kDim);
      const std::vector<float>& state = trained.states[s];
      for (int64_t row = 0; row < kRows; ++row) {
        const bool touched = row == 1 || row == 4;
        EXPECT_EQ(state[static_cast<size_t>(row * width)] != 0, touched)
            << "state " << s << " row " << row;
      }
    }
  }
}

TEST(Optimizers, TakeTheWeightDecaysOfTheirRow) {
  for (const OptimizerFacts& facts : kOptimizers) {
    if (!facts.of_tables) continue;
    SCOPED_TRACE(facts.name);
    const auto takes = [&](shardrec_weight_decay decay) {
      try {
        Trained{facts, decay};
        return true;
      } catch (const Error& error) {
        EXPECT_EQ(error.status(), SHARDREC_UNSUPPORTED) << error.what();
        return false;
      }
    };
    EXPECT_EQ(takes(SHARDREC_WEIGHT_DECAY_L2), facts.l2);
    EXPECT_EQ(takes(SHARDREC_WEIGHT_DECAY_DECOUPLE), facts.decouple);
  }
}

TEST(Optimizers, OfLayersAreThoseOfTheirRow) {
  for (const OptimizerFacts& facts : kOptimizers) {
    SCOPED_TRACE(facts.name);
    const auto make = [&] { return Mlp(3, MlpOptions().optimizer(facts.optimizer)); };
    if (facts.of_layers) {
      EXPECT_NO_THROW(make());
    } else {
      EXPECT_THROW(make(), Error);
    }
  }
}

}  // namespace
}  // namespace shardrec::test
