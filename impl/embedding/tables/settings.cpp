#include "embedding/tables/settings.h"

#include <algorithm>

#include "compute/math/initial_values.h"
#include "core/hash.h"
#include "plan/model/optimizer_step.h"

namespace shardrec::embedding {
TrainingSettings::TrainingSettings(const plan::Model& model, int64_t seed)
    : model_(model), seed_(static_cast<uint64_t>(seed)), frozen_(model.tables.size(), 0) {
  for (size_t t = 0; t < model.tables.size(); ++t) {
    const plan::Table& table = model.tables[t];
    const plan::Optimizer& optimizer = model.optimizer_of(static_cast<int32_t>(t));
    learning_rates_.push_back(optimizer.learning_rate);
    steps_.push_back({.optimizer = plan::optimizer_step(optimizer, 1),
                      .rounding = {.stochastic = table.rounding == SHARDREC_ROUNDING_STOCHASTIC,
                                   .seed = seed_,
                                   .step = 0,
                                   .table_key = compute::math::table_key(seed_, table.name)}});
  }
  rehash();
}

void TrainingSettings::rehash() {
  hash_ = core::hash64(core::hash64(0, std::as_bytes(std::span(frozen_))),
                       std::as_bytes(std::span(learning_rates_)));
}

void TrainingSettings::set_learning_rate(double learning_rate) {
  std::fill(learning_rates_.begin(), learning_rates_.end(), learning_rate);
  rehash();
}

void TrainingSettings::set_learning_rate(int32_t table, double learning_rate) {
  learning_rates_[static_cast<size_t>(table)] = learning_rate;
  rehash();
}

void TrainingSettings::set_frozen(int32_t table, bool frozen) {
  frozen_[static_cast<size_t>(table)] = frozen ? 1 : 0;
  rehash();
}

uint64_t TrainingSettings::fingerprint(int64_t updates) const {
  return core::hash64(hash_, std::as_bytes(std::span(&updates, 1)));
}

std::span<const TableStep> TrainingSettings::step_after(int64_t updates) {
  const int64_t number = updates + 1;
  for (size_t t = 0; t < steps_.size(); ++t) {
    TableStep& step = steps_[t];
    plan::Optimizer optimizer = model_.optimizer_of(static_cast<int32_t>(t));
    optimizer.learning_rate = learning_rates_[t];
    step.optimizer = plan::optimizer_step(optimizer, number);
    step.rounding.step = static_cast<uint64_t>(number);
    step.frozen = frozen_[t] != 0;
  }
  return steps_;
}

}  // namespace shardrec::embedding
