// What of a table's training may change between two steps: its learning rate, and whether it is
// frozen. Together with the number of the step they say what the step does to the table. The same
// on all ranks; every gradient message carries their fingerprint, which proves it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compute/kernels.h"
#include "plan/model/model.h"

namespace shardrec::embedding {

// One optimizer step of one table.
struct TableStep {
  compute::OptimizerStep optimizer;
  compute::Rounding rounding;
  bool frozen = false;
};

class TrainingSettings {
 public:
  // seed: of the collection, for stochastic rounding.
  TrainingSettings(const plan::Model& model, int64_t seed);

  void set_learning_rate(double learning_rate);  // of all tables
  // table must exist.
  void set_learning_rate(int32_t table, double learning_rate);
  void set_frozen(int32_t table, bool frozen);

  double learning_rate(int32_t table) const { return learning_rates_[static_cast<size_t>(table)]; }
  bool frozen(int32_t table) const { return frozen_[static_cast<size_t>(table)] != 0; }
  // Of the settings and the number of applied updates.
  uint64_t fingerprint(int64_t updates) const;

  // The step that follows `updates` applied ones, by table; valid until the next call.
  std::span<const TableStep> step_after(int64_t updates);

 private:
  void rehash();

  const plan::Model& model_;
  uint64_t seed_;
  std::vector<double> learning_rates_;
  std::vector<uint8_t> frozen_;
  std::vector<TableStep> steps_;
  uint64_t hash_ = 0;
};

}  // namespace shardrec::embedding
