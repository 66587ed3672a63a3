// Scenarios and deals at random, and deals of named kinds of sharding.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "embedding/scenario.h"
#include "support/ranks.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

int64_t between(std::mt19937_64& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

// Cuts a rectangle at random into boxes with random owners.
void cut(std::mt19937_64& random, int ranks, int depth, const BoxSpec& box,
         std::vector<BoxSpec>& out) {
  if (depth > 0 && between(random, 0, 3) != 0) {
    const bool by_rows = between(random, 0, 1) == 0;
    if (by_rows && box.rows > 1) {
      const int64_t at = between(random, 1, box.rows - 1);
      BoxSpec a = box;
      BoxSpec b = box;
      a.rows = at;
      b.row += at;
      b.rows -= at;
      cut(random, ranks, depth - 1, a, out);
      cut(random, ranks, depth - 1, b, out);
      return;
    }
    if (!by_rows && box.cols > 1) {
      const int64_t at = between(random, 1, box.cols - 1);
      BoxSpec a = box;
      BoxSpec b = box;
      a.cols = at;
      b.col += at;
      b.cols -= at;
      cut(random, ranks, depth - 1, a, out);
      cut(random, ranks, depth - 1, b, out);
      return;
    }
  }
  BoxSpec owned = box;
  owned.rank = static_cast<int32_t>(between(random, 0, ranks - 1));
  out.push_back(owned);
}

std::vector<std::vector<int64_t>> deal_out(const Scenario& scenario, std::mt19937_64& random,
                                           int ranks) {
  std::vector<std::vector<int64_t>> share;
  for (const auto& step : scenario.steps) {
    std::vector<int64_t> cuts = {0, static_cast<int64_t>(step.size())};
    for (int r = 1; r < ranks; ++r) {
      cuts.push_back(between(random, 0, static_cast<int64_t>(step.size())));
    }
    std::sort(cuts.begin(), cuts.end());
    std::vector<int64_t> sizes;
    for (int r = 0; r < ranks; ++r) {
      sizes.push_back(cuts[static_cast<size_t>(r) + 1] - cuts[static_cast<size_t>(r)]);
    }
    share.push_back(sizes);
  }
  return share;
}

}  // namespace

Scenario random_scenario(std::mt19937_64& random, int steps) {
  Scenario scenario;
  const int64_t table_count = between(random, 1, 5);
  for (int64_t t = 0; t < table_count; ++t) {
    static constexpr int64_t kRows[] = {1, 2, 5, 30, 200, 3000};
    static constexpr int64_t kDims[] = {1, 3, 4, 8, 16, 33, 64, 70};
    scenario.tables.push_back({kRows[between(random, 0, 5)], kDims[between(random, 0, 7)]});
  }
  const int64_t feature_count = between(random, 1, 6);
  for (int64_t f = 0; f < feature_count; ++f) {
    scenario.features.push_back(
        {static_cast<int32_t>(between(random, 0, table_count - 1)), between(random, 0, 1) == 1});
  }
  OptimizerSpec& optimizer = scenario.optimizer;
  optimizer.kind =
      between(random, 0, 2) != 0 ? SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD : SHARDREC_OPTIMIZER_SGD;
  static constexpr shardrec_weight_decay kDecays[] = {
      SHARDREC_WEIGHT_DECAY_NONE, SHARDREC_WEIGHT_DECAY_L2, SHARDREC_WEIGHT_DECAY_DECOUPLE};
  optimizer.decay_mode = kDecays[between(random, 0, 2)];
  optimizer.weight_decay = optimizer.decay_mode == SHARDREC_WEIGHT_DECAY_NONE ? 0 : 0.05;
  optimizer.max_gradient = between(random, 0, 2) == 0 ? 0.4 : 0;
  scenario.weighted = between(random, 0, 1) == 1;
  scenario.ids_are_32 = between(random, 0, 1) == 1;
  scenario.by_offsets = between(random, 0, 1) == 1;
  scenario.seed = between(random, 0, 1000);
  scenario.divisor = static_cast<double>(1 + scenario.seed % 2);
  std::normal_distribution<float> normal;
  for (int s = 0; s < steps; ++s) {
    // Beyond 512 samples, so that gradients are summed over several blocks.
    const int64_t samples =
        between(random, 0, 7) == 0 ? 0 : between(random, 1, s % 4 == 0 ? 1300 : 40);
    std::vector<Sample> batch(static_cast<size_t>(samples));
    for (Sample& sample : batch) {
      for (const FeatureSpec& feature : scenario.features) {
        const int64_t rows = scenario.tables[static_cast<size_t>(feature.table)].rows;
        const int64_t length = between(random, 0, 2) == 0 ? 0 : between(random, 1, 6);
        std::vector<int64_t> bag;
        std::vector<float> weights;
        for (int64_t i = 0; i < length; ++i) {
          // Half of the ids are hot: duplicates within a bag and a batch.
          bag.push_back(between(random, 0, 1) == 0
                            ? between(random, 0, std::min<int64_t>(2, rows - 1))
                            : between(random, 0, rows - 1));
          weights.push_back(scenario.weighted ? normal(random) : 1.0F);
        }
        sample.bags.push_back(bag);
        sample.weights.push_back(weights);
      }
      for (int64_t c = 0; c < scenario.width(); ++c) sample.gradient.push_back(normal(random));
    }
    scenario.steps.push_back(std::move(batch));
  }
  return scenario;
}

Deal one_rank(const Scenario& scenario) {
  Deal deal;
  for (const TableSpec& table : scenario.tables) {
    deal.plan.push_back({false, {{0, 0, table.rows, 0, table.dim}}});
  }
  for (const auto& step : scenario.steps) deal.share.push_back({static_cast<int64_t>(step.size())});
  return deal;
}

uint64_t early_senders(int64_t number) {
  constexpr std::array<uint64_t, 3> kSenders = {0, UINT64_MAX, 0x9d2c5680b5026f5a};
  return kSenders[static_cast<uint64_t>(number) % kSenders.size()];
}

Deal random_deal(const Scenario& scenario, std::mt19937_64& random, int ranks) {
  Deal deal;
  deal.ranks = ranks;
  deal.ranks_per_node = static_cast<int>(between(random, 1, ranks));
  deal.threads = static_cast<int>(between(random, 1, 2));
  deal.borrow = (scenario.seed / 2 + ranks) % 2 == 1;
  deal.sends_early = early_senders(scenario.seed + ranks);
  for (const TableSpec& table : scenario.tables) {
    TablePlanSpec plan;
    if (between(random, 0, 4) == 0) {
      plan.replicated = true;
    } else {
      cut(random, ranks, static_cast<int>(between(random, 0, 4)), {0, 0, table.rows, 0, table.dim},
          plan.boxes);
    }
    deal.plan.push_back(plan);
  }
  deal.share = deal_out(scenario, random, ranks);
  return deal;
}

Deal named_deal(const Scenario& scenario, std::mt19937_64& random, int ranks, int ranks_per_node,
                shardrec_sharding kind) {
  Deal deal;
  deal.ranks = ranks;
  deal.ranks_per_node = ranks_per_node;
  deal.borrow = (scenario.seed / 2 + ranks) % 2 == 1;
  deal.sends_early = early_senders(scenario.seed + ranks);
  deal.share = deal_out(scenario, random, ranks);
  shardrec_model* model = make_model(scenario);
  shardrec_topology* topology = nullptr;
  SR_EXPECT_OK(shardrec_topology_create(ranks, ranks_per_node, nullptr, &topology));
  shardrec_options* options = nullptr;
  SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_PLAN, &options));
  SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_SHARDING, kind));
  shardrec_plan* plan = nullptr;
  SR_EXPECT_OK(shardrec_plan_create(model, topology, options, &plan));
  for (size_t t = 0; t < scenario.tables.size(); ++t) {
    const auto table = static_cast<int32_t>(t);
    TablePlanSpec spec;
    int32_t boxes = 0;
    SR_EXPECT_OK(shardrec_plan_box_count(plan, table, &boxes));
    spec.replicated = boxes == 0;
    for (int32_t b = 0; b < boxes; ++b) {
      shardrec_box box{};
      SR_EXPECT_OK(read_box(plan, table, b, &box));
      spec.boxes.push_back({box.rank, box.row, box.rows, box.col, box.cols});
    }
    deal.plan.push_back(spec);
  }
  shardrec_plan_destroy(&plan);
  shardrec_options_destroy(&options);
  shardrec_topology_destroy(&topology);
  shardrec_model_destroy(&model);
  return deal;
}

}  // namespace shardrec::test
