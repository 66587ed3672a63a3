#include "embedding/variations.h"

namespace shardrec::test {
namespace {

std::vector<float> normals(std::mt19937_64& random, int64_t count) {
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

}  // namespace

OptimizerSpec random_optimizer(std::mt19937_64& random, shardrec_optimizer kind) {
  const bool both = kind == SHARDREC_OPTIMIZER_SGD || kind == SHARDREC_OPTIMIZER_ADAGRAD ||
                    kind == SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD;
  std::vector<shardrec_weight_decay> modes = {SHARDREC_WEIGHT_DECAY_NONE};
  if (both || kind == SHARDREC_OPTIMIZER_LARS_SGD) modes.push_back(SHARDREC_WEIGHT_DECAY_L2);
  if (kind != SHARDREC_OPTIMIZER_LARS_SGD) modes.push_back(SHARDREC_WEIGHT_DECAY_DECOUPLE);
  OptimizerSpec optimizer{.kind = kind};
  optimizer.decay_mode = modes[random() % modes.size()];
  optimizer.weight_decay = 0.05;  // without a mode it counts for nothing
  optimizer.learning_rate = kind == SHARDREC_OPTIMIZER_LARS_SGD ? 0.5 : 0.05;
  optimizer.max_gradient = random() % 3 == 0 ? 0.4 : 0;
  optimizer.max_norm = random() % 3 == 0 ? 0.6 : 0;
  return optimizer;
}

void vary_optimizers(Scenario& scenario, std::mt19937_64& random, shardrec_optimizer kind) {
  static constexpr shardrec_dtype kDtypes[] = {SHARDREC_FLOAT32, SHARDREC_FLOAT32, SHARDREC_FLOAT16,
                                               SHARDREC_BFLOAT16};
  scenario.optimizer = random_optimizer(random, kind);
  if (kind == SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD && scenario.optimizer.max_norm > 0) {
    scenario.optimizer.momentum_scale = 4;
  }
  for (TableSpec& table : scenario.tables) {
    table.dtype = kDtypes[random() % 4];
    if (random() % 4 == 0) {
      table.optimizer = random_optimizer(random, static_cast<shardrec_optimizer>(1 + random() % 8));
    }
  }
}

void add_accumulation(Scenario& scenario, std::mt19937_64& random) {
  scenario.accumulates.clear();
  for (size_t s = 0; s + 1 < scenario.steps.size(); ++s) {
    scenario.accumulates.push_back(random() % 2 == 0);
  }
  scenario.frozen_table = static_cast<int32_t>(random() % scenario.tables.size());
  scenario.freeze_from = random() % scenario.steps.size();
  scenario.freeze_to = scenario.freeze_from + 1 + random() % 3;
}

void add_sequences(Scenario& scenario, std::mt19937_64& random) {
  for (FeatureSpec& feature : scenario.features) feature.sequence = random() % 2 == 0;
  scenario.features[random() % scenario.features.size()].sequence = true;
  for (FeatureSpec& feature : scenario.features) feature.mean = feature.mean && !feature.sequence;
  for (auto& step : scenario.steps) {
    for (Sample& sample : step) {
      sample.gradient = normals(random, scenario.width());
      sample.sequence_gradients.assign(scenario.features.size(), {});
      for (size_t f = 0; f < scenario.features.size(); ++f) {
        const FeatureSpec& feature = scenario.features[f];
        if (!feature.sequence) continue;
        const int64_t dim = scenario.tables[static_cast<size_t>(feature.table)].dim;
        sample.sequence_gradients[f] =
            normals(random, static_cast<int64_t>(sample.bags[f].size()) * dim);
      }
    }
  }
}

void add_stray_ids(Scenario& scenario, std::mt19937_64& random) {
  for (TableSpec& table : scenario.tables) {
    table.out_of_range =
        random() % 3 == 0 ? SHARDREC_OUT_OF_RANGE_CLAMP : SHARDREC_OUT_OF_RANGE_DROP;
  }
  for (auto& step : scenario.steps) {
    for (Sample& sample : step) {
      for (size_t f = 0; f < scenario.features.size(); ++f) {
        const int64_t rows = scenario.tables[static_cast<size_t>(scenario.features[f].table)].rows;
        const std::vector<int64_t> strays = {-1, rows, rows + 5, INT32_MIN, INT32_MAX};
        // Some bags are all strays.
        const bool all = random() % 6 == 0;
        for (int64_t& id : sample.bags[f]) {
          if (all || random() % 5 == 0) id = strays[random() % strays.size()];
        }
      }
    }
  }
}

void add_repeated_bags(Scenario& scenario, std::mt19937_64& random) {
  for (auto& step : scenario.steps) {
    for (size_t s = 1; s < step.size(); ++s) {
      for (size_t f = 0; f < scenario.features.size(); ++f) {
        if (scenario.features[f].sequence || random() % 3 == 0) continue;
        const size_t from = random() % s;
        step[s].bags[f] = step[from].bags[f];
        step[s].weights[f] = step[from].weights[f];
      }
    }
  }
}

void round_gradients(Scenario& scenario, std::mt19937_64& random) {
  const auto draw = [&](std::vector<float>& gradient) {
    for (float& g : gradient) g = static_cast<float>(static_cast<int>(random() % 129) - 64) / 16;
  };
  for (auto& step : scenario.steps) {
    for (Sample& sample : step) {
      draw(sample.gradient);
      for (std::vector<float>& rows : sample.sequence_gradients) draw(rows);
    }
  }
}

}  // namespace shardrec::test
