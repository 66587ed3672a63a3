#include "digests/configurations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "embedding/variations.h"

namespace shardrec::test {
namespace {

template <class Value>
struct Named {
  const char* name;
  Value value;
};

constexpr Named<shardrec_optimizer> kOptimizers[] = {
    {"sgd", SHARDREC_OPTIMIZER_SGD},
    {"rowwise_adagrad", SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD},
    {"adagrad", SHARDREC_OPTIMIZER_ADAGRAD},
    {"adam", SHARDREC_OPTIMIZER_ADAM},
    {"partial_rowwise_adam", SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_ADAM},
    {"lamb", SHARDREC_OPTIMIZER_LAMB},
    {"partial_rowwise_lamb", SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_LAMB},
    {"lars_sgd", SHARDREC_OPTIMIZER_LARS_SGD}};

// 0: boxes at random.
constexpr Named<int> kShardings[] = {{"table_wise", SHARDREC_SHARDING_TABLE_WISE},
                                     {"row_wise", SHARDREC_SHARDING_ROW_WISE},
                                     {"column_wise", SHARDREC_SHARDING_COLUMN_WISE},
                                     {"table_row_wise", SHARDREC_SHARDING_TABLE_ROW_WISE},
                                     {"table_column_wise", SHARDREC_SHARDING_TABLE_COLUMN_WISE},
                                     {"grid", SHARDREC_SHARDING_GRID},
                                     {"data_parallel", SHARDREC_SHARDING_DATA_PARALLEL},
                                     {"mixed", SHARDREC_SHARDING_MIXED},
                                     {"boxes", 0}};

struct Storage {
  shardrec_dtype dtype;
  shardrec_rounding rounding;
};
constexpr Named<Storage> kStorages[] = {
    {"float32", {SHARDREC_FLOAT32, SHARDREC_ROUNDING_NEAREST}},
    {"float16", {SHARDREC_FLOAT16, SHARDREC_ROUNDING_NEAREST}},
    {"bfloat16", {SHARDREC_BFLOAT16, SHARDREC_ROUNDING_NEAREST}},
    {"float16_stochastic", {SHARDREC_FLOAT16, SHARDREC_ROUNDING_STOCHASTIC}},
    {"bfloat16_stochastic", {SHARDREC_BFLOAT16, SHARDREC_ROUNDING_STOCHASTIC}}};

enum class Pooling : uint8_t { kSum, kMean, kWeighted, kSequences };
constexpr Named<Pooling> kPoolings[] = {{"sum", Pooling::kSum},
                                        {"mean", Pooling::kMean},
                                        {"weighted", Pooling::kWeighted},
                                        {"sequences", Pooling::kSequences}};

struct Shape {
  int ranks;
  int ranks_per_node;
  int replicas;
};
constexpr Named<Shape> kShapes[] = {{"1", {1, 1, 1}},
                                    {"2", {2, 2, 1}},
                                    {"4", {4, 4, 1}},
                                    {"2x2", {4, 2, 1}},
                                    {"mesh_2x2", {2, 2, 2}}};

enum class Input : uint8_t {
  kPlain,
  kOffsets,  // and ids of 32 bits
  kVariable,
  kUnique,
  kStrays,
  kAccumulated,
  kDeduplicated,
  kHierarchical,
  kWeightGradient
};
constexpr Named<Input> kInputs[] = {{"plain", Input::kPlain},
                                    {"offsets", Input::kOffsets},
                                    {"variable", Input::kVariable},
                                    {"unique", Input::kUnique},
                                    {"strays", Input::kStrays},
                                    {"accumulated", Input::kAccumulated},
                                    {"deduplicated", Input::kDeduplicated},
                                    {"hierarchical", Input::kHierarchical},
                                    {"weight_gradient", Input::kWeightGradient}};

constexpr Named<shardrec_compression> kCompressions[] = {
    {"none", SHARDREC_COMPRESSION_NONE},
    {"float16", SHARDREC_COMPRESSION_FLOAT16},
    {"bfloat16", SHARDREC_COMPRESSION_BFLOAT16},
    {"int8", SHARDREC_COMPRESSION_INT8}};

using Random = std::mt19937_64;

// In [low, high], the same on every machine.
int64_t between(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

// In [-2, 2), 22 bits: sums of them round, so that their order shows.
float number(Random& random) {
  return static_cast<float>(between(random, -(1 << 21), (1 << 21) - 1)) * 0x1p-20F;
}

void add_batches(Random& random, Scenario& scenario) {
  constexpr int kSteps = 10;
  for (int s = 0; s < kSteps; ++s) {
    // Once beyond 512 samples, so that gradients are summed over several blocks; once none.
    const int64_t samples = s == 3 ? 530 : s == 7 ? 0 : between(random, 1, 40);
    std::vector<Sample> batch(static_cast<size_t>(samples));
    for (Sample& sample : batch) {
      for (const FeatureSpec& feature : scenario.features) {
        const int64_t rows = scenario.tables[static_cast<size_t>(feature.table)].rows;
        const int64_t length = between(random, 0, 2) == 0 ? 0 : between(random, 1, 6);
        std::vector<int64_t>& bag = sample.bags.emplace_back();
        std::vector<float>& weights = sample.weights.emplace_back();
        for (int64_t i = 0; i < length; ++i) {
          // Half of the ids are hot: duplicates within a bag and a batch.
          const int64_t last =
              between(random, 0, 1) == 0 ? std::min<int64_t>(2, rows - 1) : rows - 1;
          bag.push_back(between(random, 0, last));
          weights.push_back(scenario.weighted ? number(random) : 1.0F);
        }
      }
    }
    scenario.steps.push_back(std::move(batch));
  }
}

// After everything that changes ids and widths.
void add_gradients(Random& random, Scenario& scenario) {
  const auto draw = [&](std::vector<float>& out, int64_t count) {
    out.resize(static_cast<size_t>(count));
    for (float& value : out) value = number(random);
  };
  for (auto& step : scenario.steps) {
    for (Sample& sample : step) {
      draw(sample.gradient, scenario.width());
      sample.sequence_gradients.assign(scenario.features.size(), {});
      for (size_t f = 0; f < scenario.features.size(); ++f) {
        const FeatureSpec& feature = scenario.features[f];
        if (!feature.sequence) continue;
        const int64_t dim = scenario.tables[static_cast<size_t>(feature.table)].dim;
        draw(sample.sequence_gradients[f], static_cast<int64_t>(sample.bags[f].size()) * dim);
      }
    }
  }
}

OptimizerSpec optimizer(Random& random, shardrec_optimizer kind) {
  OptimizerSpec spec = random_optimizer(random, kind);
  spec.shard_statistics = between(random, 0, 5) == 0;
  return spec;
}

Scenario make_scenario(Random& random, const Configuration::Choice& choice) {
  Scenario scenario;
  const Storage storage = kStorages[choice.storage].value;
  const Pooling pooling = kPoolings[choice.pooling].value;
  const Input input = kInputs[choice.input].value;
  scenario.optimizer = optimizer(random, kOptimizers[choice.optimizer].value);
  const int64_t tables = between(random, 1, 4);
  for (int64_t t = 0; t < tables; ++t) {
    static constexpr int64_t kRows[] = {1, 2, 5, 30, 200, 900};
    static constexpr int64_t kDims[] = {1, 3, 4, 8, 16, 33, 40};
    scenario.tables.push_back({.rows = kRows[between(random, t == 0 ? 3 : 0, 5)],
                               .dim = kDims[between(random, t == 0 ? 3 : 0, 6)],
                               .dtype = storage.dtype,
                               .rounding = storage.rounding});
    if (t == 2) {
      const auto other = static_cast<shardrec_optimizer>(between(random, 1, 8));
      scenario.tables.back().optimizer = optimizer(random, other);
    }
  }
  const int64_t features = between(random, tables, tables + 2);
  for (int64_t f = 0; f < features; ++f) {
    FeatureSpec feature{.table =
                            static_cast<int32_t>(f < tables ? f : between(random, 0, tables - 1))};
    feature.sequence = pooling == Pooling::kSequences && f % 2 == 0;
    feature.mean = !feature.sequence && (pooling == Pooling::kMean || f % 3 == 2);
    scenario.features.push_back(feature);
  }
  scenario.weighted = pooling == Pooling::kWeighted;
  scenario.ids_are_32 = input == Input::kOffsets;
  scenario.by_offsets = input == Input::kOffsets;
  scenario.divisor = static_cast<double>(between(random, 1, 3));
  scenario.seed = between(random, 0, 1000);
  add_batches(random, scenario);
  if (input == Input::kStrays) add_stray_ids(scenario, random);
  if (input == Input::kUnique) add_repeated_bags(scenario, random);
  if (input == Input::kAccumulated) add_accumulation(scenario, random);
  add_gradients(random, scenario);
  return scenario;
}

// Samples of each rank, by step.
std::vector<std::vector<int64_t>> make_share(Random& random, const Scenario& scenario, int world) {
  std::vector<std::vector<int64_t>> share;
  for (const auto& step : scenario.steps) {
    std::vector<int64_t>& sizes = share.emplace_back();
    auto left = static_cast<int64_t>(step.size());
    for (int r = 1; r < world; ++r) {
      sizes.push_back(between(random, 0, left));
      left -= sizes.back();
    }
    sizes.push_back(left);
  }
  return share;
}

// Boxes of rows and columns cut at random, or a table that is replicated.
TablePlanSpec make_boxes(Random& random, const TableSpec& table, int ranks, bool may_replicate) {
  TablePlanSpec plan;
  plan.replicated = may_replicate && between(random, 0, 4) == 0;
  if (plan.replicated) return plan;
  const auto part = [&](int64_t left, int cuts) {
    return cuts == 3 ? left : between(random, 1, left);
  };
  int64_t row = 0;
  for (int i = 0; row < table.rows; ++i) {
    const int64_t rows = part(table.rows - row, i);
    int64_t col = 0;
    for (int k = 0; col < table.dim; ++k) {
      const int64_t cols = part(table.dim - col, k);
      const auto rank = static_cast<int32_t>(between(random, 0, ranks - 1));
      plan.boxes.push_back({rank, row, rows, col, cols});
      col += cols;
    }
    row += rows;
  }
  return plan;
}

Deal make_deal(Random& random, const Scenario& scenario, const Configuration::Choice& choice) {
  const Shape shape = kShapes[choice.shape].value;
  const Input input = kInputs[choice.input].value;
  const int sharding = kShardings[choice.sharding].value;
  Deal deal;
  if (sharding != 0) {
    deal.plan = named_deal(scenario, random, shape.ranks, shape.ranks_per_node,
                           static_cast<shardrec_sharding>(sharding))
                    .plan;
  } else {
    for (const TableSpec& table : scenario.tables) {
      deal.plan.push_back(make_boxes(random, table, shape.ranks, shape.replicas == 1));
    }
  }
  for (TablePlanSpec& table : deal.plan) {
    if (table.replicated)
      table.replication = static_cast<shardrec_replication>(between(random, 1, 3));
  }
  deal.ranks = shape.ranks;
  deal.ranks_per_node = shape.ranks_per_node;
  deal.replicas = shape.replicas;
  deal.sync_every = static_cast<int>(between(random, 1, 4));
  deal.threads = static_cast<int>(between(random, 1, 2));
  deal.form = input == Input::kVariable ? BatchForm::kVariableIdentity
              : input == Input::kUnique ? BatchForm::kVariableUnique
                                        : BatchForm::kPlain;
  constexpr shardrec_dtype kOutputs[] = {SHARDREC_FLOAT32, SHARDREC_FLOAT32, SHARDREC_FLOAT16,
                                         SHARDREC_BFLOAT16};
  deal.output_dtype = kOutputs[between(random, 0, 3)];
  deal.deduplicate = input == Input::kDeduplicated;
  deal.hierarchical = input == Input::kHierarchical;
  deal.weight_gradient = input == Input::kWeightGradient;
  deal.borrow = between(random, 0, 1) == 1;
  deal.sends_early = early_senders(scenario.seed + deal.sync_every);
  deal.forward_compression = kCompressions[choice.forward].value;
  deal.backward_compression = kCompressions[choice.backward].value;
  deal.share = make_share(random, scenario, deal.world());
  return deal;
}

Configuration configuration(size_t optimizer, size_t sharding, size_t storage, uint64_t seed) {
  Random random(seed);
  const auto draw = [&](size_t count) {
    return static_cast<size_t>(between(random, 0, static_cast<int64_t>(count) - 1));
  };
  Configuration out;
  out.seed = seed;
  Configuration::Choice& choice = out.choice;
  choice = {.optimizer = optimizer, .sharding = sharding, .storage = storage};
  choice.pooling = draw(std::size(kPoolings));
  choice.shape = draw(std::size(kShapes));
  choice.input = draw(std::size(kInputs));
  const bool compresses = draw(2) == 1;
  const bool hierarchical = kInputs[choice.input].value == Input::kHierarchical;
  choice.forward = compresses && !hierarchical ? draw(std::size(kCompressions)) : 0;
  choice.backward = compresses ? draw(std::size(kCompressions)) : 0;
  // A mesh holds no replicated tables.
  const int kind = kShardings[sharding].value;
  while (kShapes[choice.shape].value.replicas > 1 &&
         (kind == SHARDREC_SHARDING_DATA_PARALLEL || kind == SHARDREC_SHARDING_MIXED)) {
    choice.shape = draw(std::size(kShapes));
  }
  const Shape shape = kShapes[choice.shape].value;
  out.world = shape.ranks * shape.replicas;
  for (const char* part :
       {kOptimizers[optimizer].name, kShardings[sharding].name, kStorages[storage].name,
        kPoolings[choice.pooling].name, kShapes[choice.shape].name, kInputs[choice.input].name}) {
    out.name += std::string(part) + "/";
  }
  out.name +=
      std::string(kCompressions[choice.forward].name) + "+" + kCompressions[choice.backward].name;
  return out;
}

}  // namespace

Configuration::Run Configuration::make() const {
  Random random(seed + 1'000'000);
  Run run;
  run.scenario = make_scenario(random, choice);
  run.deal = make_deal(random, run.scenario, choice);
  return run;
}

std::vector<Configuration> configurations() {
  std::vector<Configuration> all;
  for (size_t o = 0; o < std::size(kOptimizers); ++o) {
    for (size_t s = 0; s < std::size(kShardings); ++s) {
      for (size_t d = 0; d < std::size(kStorages); ++d) {
        all.push_back(configuration(o, s, d, all.size()));
      }
    }
  }
  return all;
}

std::vector<size_t> spread_of_configurations() {
  constexpr size_t kCount = 30;
  using Choice = Configuration::Choice;
  constexpr size_t Choice::* kParts[] = {&Choice::optimizer, &Choice::sharding, &Choice::storage,
                                         &Choice::pooling,   &Choice::shape,    &Choice::input,
                                         &Choice::forward,   &Choice::backward};
  const auto all = configurations();
  std::map<std::pair<size_t, size_t>, int> chosen;  // how often, by part and index
  std::set<size_t> spread;
  while (spread.size() < kCount) {
    // The next one's parts have been chosen least often.
    std::pair<int, size_t> least{std::numeric_limits<int>::max(), 0};
    for (size_t i = 0; i < all.size(); ++i) {
      if (spread.contains(i)) continue;
      int often = 0;
      for (size_t p = 0; p < std::size(kParts); ++p) often += chosen[{p, all[i].choice.*kParts[p]}];
      least = std::min(least, {often, i});
    }
    spread.insert(least.second);
    for (size_t p = 0; p < std::size(kParts); ++p) {
      ++chosen[{p, all[least.second].choice.*kParts[p]}];
    }
  }
  return {spread.begin(), spread.end()};
}

}  // namespace shardrec::test
