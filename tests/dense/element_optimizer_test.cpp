#include "dense/element_optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/world.h"
#include "core/threads.h"
#include "dense/optimizer_reference.h"
#include "dense/reference.h"

namespace shardrec::dense {
namespace {

constexpr auto kKinds =
    std::to_array({SHARDREC_OPTIMIZER_SGD, SHARDREC_OPTIMIZER_MOMENTUM_SGD,
                   SHARDREC_OPTIMIZER_ADAGRAD, SHARDREC_OPTIMIZER_ADAM, SHARDREC_OPTIMIZER_LAMB});
constexpr auto kDecays = std::to_array(
    {SHARDREC_WEIGHT_DECAY_NONE, SHARDREC_WEIGHT_DECAY_L2, SHARDREC_WEIGHT_DECAY_DECOUPLE});

// Of several blocks, of one, of a part of one, of nothing.
const std::vector<size_t> kSizes = {40000, 5, 0, 16384, 1, 20001};

// Parameters of different scales with the memory of their gradients.
struct Model {
  std::vector<std::vector<float>> values;
  std::vector<std::vector<float>> gradients;
  ElementOptimizer optimizer;
  std::mt19937 random{17};

  explicit Model(const plan::Optimizer& settings, const std::vector<size_t>& sizes = kSizes)
      : optimizer(settings) {
    std::normal_distribution<float> normal;
    float scale = 0.25F;
    for (const size_t size : sizes) {
      values.emplace_back(size);
      gradients.emplace_back(size);
      for (float& value : values.back()) value = scale * normal(random);
      scale *= 2;
    }
    for (size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_EQ(optimizer.add(values[i], gradients[i]), i);
    }
  }

  void draw_gradients() {
    std::normal_distribution<float> normal;
    for (auto& gradient : gradients) {
      for (float& value : gradient) value = normal(random);
    }
  }

  std::vector<float> everything() const {
    std::vector<float> all;
    const auto append = [&](std::span<const float> x) {
      all.insert(all.end(), x.begin(), x.end());
    };
    for (size_t i = 0; i < values.size(); ++i) {
      append(values[i]);
      for (int s = 0; s < optimizer.states(); ++s) append(optimizer.state(i, s));
    }
    return all;
  }
};

plan::Optimizer settings_of(shardrec_optimizer kind, shardrec_weight_decay decay) {
  return {.kind = kind,
          .learning_rate = 0.02,
          .eps = 1e-8,
          .weight_decay = decay == SHARDREC_WEIGHT_DECAY_NONE ? 0 : 0.1,
          .weight_decay_mode = decay,
          .momentum = 0.8};
}

TEST(ElementOptimizer, TwentyStepsEqualTheFormulaInDoublePerParameter) {
  for (const auto kind : kKinds) {
    for (const auto decay : kDecays) {
      SCOPED_TRACE(testing::Message() << "optimizer " << kind << " decay " << decay);
      core::Threads threads(2);
      Model model(settings_of(kind, decay));
      std::vector<test::OptimizerReference> references;
      for (const auto& values : model.values) {
        references.push_back({model.optimizer.optimizer(), {values.begin(), values.end()}});
      }
      for (int t = 1; t <= 20; ++t) {
        model.draw_gradients();
        for (size_t i = 0; i < references.size(); ++i) references[i].step(model.gradients[i], t);
        model.optimizer.begin_step();
        model.optimizer.step(0, model.values.size(), threads);
      }
      EXPECT_EQ(model.optimizer.steps(), 20);
      for (size_t i = 0; i < references.size(); ++i) {
        SCOPED_TRACE(testing::Message() << "parameter " << i);
        test::expect_near(model.values[i], references[i].w, 5e-6, "values");
        const int states = model.optimizer.states();
        if (states > 0) {
          test::expect_near(model.optimizer.state(i, 0), references[i].first, 3e-6, "state 0");
        }
        if (states > 1) {
          test::expect_near(model.optimizer.state(i, 1), references[i].second, 3e-6, "state 1");
        }
      }
    }
  }
}

double norm(std::span<const float> x) {
  double sum = 0;
  for (const float each : x) sum += static_cast<double>(each) * each;
  return std::sqrt(sum);
}

// norm(step) = lr * norm(w): each parameter moves by the same part of its own length.
TEST(ElementOptimizer, LambMovesEachParameterByTheSamePartOfItsLength) {
  core::Threads threads(2);
  Model model(settings_of(SHARDREC_OPTIMIZER_LAMB, SHARDREC_WEIGHT_DECAY_NONE), {30000, 700});
  for (int t = 1; t <= 3; ++t) {
    model.draw_gradients();
    const auto before = model.values;
    model.optimizer.begin_step();
    model.optimizer.step(0, 2, threads);
    for (size_t i = 0; i < 2; ++i) {
      std::vector<float> moved(before[i].size());
      std::transform(before[i].begin(), before[i].end(), model.values[i].begin(), moved.begin(),
                     std::minus<>());
      EXPECT_NEAR(norm(moved) / norm(before[i]), 0.02, 1e-6) << "parameter " << i;
    }
  }
}

TEST(ElementOptimizer, LambOfAParameterOfZeroesTakesTheRatioOne) {
  core::Threads threads(1);
  std::vector<float> values(3), gradients = {1, -2, 4};
  ElementOptimizer optimizer({.kind = SHARDREC_OPTIMIZER_LAMB, .learning_rate = 0.5, .eps = 0});
  optimizer.add(values, gradients);
  optimizer.begin_step();
  optimizer.step(0, 1, threads);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(values[i], gradients[i] > 0 ? -0.5 : 0.5, 1e-6);
}

TEST(ElementOptimizer, NeitherThreadsNorBucketsChangeABit) {
  for (const auto kind : kKinds) {
    SCOPED_TRACE(kind);
    const auto run = [&](int width, const std::vector<std::pair<size_t, size_t>>& buckets) {
      core::Threads threads(width);
      Model model(settings_of(kind, SHARDREC_WEIGHT_DECAY_DECOUPLE));
      for (int t = 0; t < 3; ++t) {
        model.draw_gradients();
        model.optimizer.begin_step();
        for (const auto& [first, count] : buckets) model.optimizer.step(first, count, threads);
      }
      return model.everything();
    };
    const std::vector<float> expected = run(1, {{0, 6}});
    for (const int width : {1, 2, 3, 5}) {
      EXPECT_TRUE(test::same_bits(run(width, {{0, 6}}), expected)) << width;
      EXPECT_TRUE(test::same_bits(run(width, {{4, 2}, {1, 3}, {0, 1}, {0, 0}}), expected)) << width;
    }
  }
}

TEST(ElementOptimizer, DisjointParametersMayBeSteppedAtOnce) {
  for (const auto kind : kKinds) {
    Model one(settings_of(kind, SHARDREC_WEIGHT_DECAY_L2));
    Model two(settings_of(kind, SHARDREC_WEIGHT_DECAY_L2));
    core::Threads threads(1);
    for (int t = 0; t < 3; ++t) {
      one.draw_gradients();
      one.optimizer.begin_step();
      one.optimizer.step(0, 6, threads);
      two.draw_gradients();
      two.optimizer.begin_step();
      std::thread other([&] {
        core::Threads own(2);
        two.optimizer.step(3, 3, own);
      });
      two.optimizer.step(0, 3, threads);
      other.join();
    }
    EXPECT_TRUE(test::same_bits(one.everything(), two.everything())) << kind;
  }
}

TEST(ElementOptimizer, ALearningRateHoldsFromTheNextStepThatBegins) {
  core::Threads threads(1);
  std::vector<float> values(2), gradients = {1, 1};
  ElementOptimizer optimizer({.kind = SHARDREC_OPTIMIZER_SGD, .learning_rate = 1});
  for (size_t i = 0; i < 2; ++i) {
    optimizer.add(std::span(values).subspan(i, 1), std::span(gradients).subspan(i, 1));
  }
  optimizer.begin_step();
  optimizer.step(0, 1, threads);
  optimizer.set_learning_rate(0.25);
  optimizer.step(1, 1, threads);
  EXPECT_EQ(values[0], values[1]);
  optimizer.begin_step();
  optimizer.step(0, 2, threads);
  EXPECT_EQ(values[1], -1.25F);
  EXPECT_TRUE(optimizer.learning_rate_was_set());
  EXPECT_EQ(optimizer.initial_optimizer().learning_rate, 1);
}

TEST(ElementOptimizer, StatesStayWhenParametersAreAddedOrMoved) {
  for (const auto kind : kKinds) {
    core::Threads threads(2);
    const plan::Optimizer settings = settings_of(kind, SHARDREC_WEIGHT_DECAY_NONE);
    Model model(settings, {20000});
    Model same(settings, {20000});
    const auto step = [&](Model& of) {
      of.draw_gradients();
      of.optimizer.begin_step();
      of.optimizer.step(0, 1, threads);
    };
    step(model);
    step(same);
    std::vector<float> more(50000, 1.0F), gradient(50000, 0.5F);
    EXPECT_EQ(model.optimizer.add(more, gradient), 1U);
    std::vector<float> moved = model.values[0];
    std::vector<float> moved_gradient(moved.size());
    model.optimizer.rebind(0, moved, moved_gradient);
    model.values[0].swap(moved);  // the memory itself moves with it
    model.gradients[0].swap(moved_gradient);
    step(model);
    step(same);
    EXPECT_TRUE(test::same_bits(model.everything(), same.everything())) << kind;
    for (int s = 0; s < model.optimizer.states(); ++s) {
      const std::span<float> state = model.optimizer.state(1, s);
      EXPECT_TRUE(std::all_of(state.begin(), state.end(), [](float x) { return x == 0; }));
    }
  }
}

TEST(ElementOptimizer, RefusesTheOptimizersThatOnlyTablesHave) {
  for (const auto kind :
       {SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD, SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_ADAM,
        SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_LAMB, SHARDREC_OPTIMIZER_LARS_SGD}) {
    const auto error = comm::error_of([&] { ElementOptimizer optimizer({.kind = kind}); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status(), SHARDREC_UNSUPPORTED);
    EXPECT_NE(error->sentence().find("MOMENTUM_SGD, ADAGRAD, ADAM and LAMB are accepted"),
              std::string::npos)
        << error->sentence();
  }
}

}  // namespace
}  // namespace shardrec::dense
