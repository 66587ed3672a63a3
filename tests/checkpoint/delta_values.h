// What tests of deltas train, and what is in the tables then.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "checkpoint/trained.h"
#include "plan/model/optimizer_step.h"

namespace shardrec_test {

// All tables and states, as rows are read of them. Collective.
using Values = std::vector<std::vector<float>>;

inline Values values_of(Trained& trained) {
  Values all;
  for (int32_t t = 0; t < kOptimizers; ++t) {
    const auto read = [&](shardrec_table_part part, int64_t width) {
      auto& values = all.emplace_back(static_cast<size_t>(World::rows(t) * width));
      trained.tables->read_range(t, part, 0, World::rows(t),
                                 {values.data(), World::rows(t), width});
    };
    read(SHARDREC_TABLE_WEIGHTS, World::dim(t));
    const auto states = shardrec::plan::states_of(static_cast<shardrec_optimizer>(1 + t));
    for (size_t k = 0; k < states.size(); ++k) {
      read(static_cast<shardrec_table_part>(SHARDREC_TABLE_STATE + k),
           states[k].by_row ? 1 : World::dim(t));
    }
  }
  return all;
}

// Steps and writes, as many as `random` says; a sync behind them.
inline void train_some(Trained& trained, int64_t& number, std::mt19937& random) {
  for (uint32_t i = random() % 4; i > 0; --i, ++number) {
    if (number % 5 == 4) {
      trained.write_some(number);
    } else {
      trained.step(number);
    }
  }
  trained.tables->sync_replicas();
}

}  // namespace shardrec_test
