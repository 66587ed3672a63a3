// A model as data: tables, features, optimizer. What the C API builds and everything else reads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compute/optimizer.h"
#include "plan/model/limits.h"
#include "plan/model/rectangle.h"
#include "shardrec/model.h"
#include "shardrec/tensor.h"

namespace shardrec::plan {

struct Optimizer {
  shardrec_optimizer kind = SHARDREC_OPTIMIZER_SGD;
  double learning_rate = 0.01;
  double eps = 1e-8;
  double weight_decay = 0;
  shardrec_weight_decay weight_decay_mode = SHARDREC_WEIGHT_DECAY_NONE;
  double max_gradient = 0;  // 0: no clamp
  double beta1 = 0.9;
  double beta2 = 0.999;
  double momentum = 0.9;
  double eta = 0.001;
  double max_norm = 0;        // 0: off
  double momentum_scale = 1;  // 1: off
  shardrec_row_statistics row_statistics = SHARDREC_ROW_STATISTICS_ROW;

  bool operator==(const Optimizer&) const = default;
};

using compute::OptimizerState;

// What an optimizer of a table keeps, in the order of shardrec_table_part; empty for SGD.
std::span<const OptimizerState> states_of(shardrec_optimizer kind) noexcept;

struct Table {
  std::string name;
  int64_t rows = 0;
  int64_t dim = 0;
  shardrec_dtype dtype = SHARDREC_FLOAT32;
  shardrec_init init = SHARDREC_INIT_UNIFORM;
  std::optional<double> init_min = {};  // empty: -sqrt(1 / rows)
  std::optional<double> init_max = {};  // empty: sqrt(1 / rows)
  shardrec_rounding rounding = SHARDREC_ROUNDING_NEAREST;
  shardrec_out_of_range out_of_range = SHARDREC_OUT_OF_RANGE_ERROR;
  std::optional<Optimizer> optimizer = {};  // empty: the model's
  Limits limits = {};

  Rectangle cells() const { return {0, rows, 0, dim}; }

  bool operator==(const Table&) const = default;
};

struct Feature {
  std::string name;
  int32_t table = 0;
  shardrec_pooling pooling = SHARDREC_POOLING_SUM;

  bool operator==(const Feature&) const = default;
};

// Invariants, kept by the functions below: names unique and not empty, sizes in
// range, features name existing tables.
struct Model {
  std::vector<Table> tables;
  std::vector<Feature> features;
  Optimizer optimizer;

  const Optimizer& optimizer_of(int32_t table) const {
    const std::optional<Optimizer>& own = tables[static_cast<size_t>(table)].optimizer;
    return own ? *own : optimizer;
  }
  bool operator==(const Model&) const = default;
};

// Each throws INVALID_ARGUMENT or UNSUPPORTED and leaves the model as it was.
int32_t add_table(Model& model, Table table);
void add_feature(Model& model, Feature feature);
void set_optimizer(Model& model, const Optimizer& optimizer);
void set_table_optimizer(Model& model, int32_t table, const std::optional<Optimizer>& optimizer);

// Where the features stand in the outputs. Output 0 holds the pooled ones: tables as added, within
// a table its features as added. Output 1 + k is the k-th sequence feature.
struct OutputLayout {
  std::vector<int64_t> column;     // by feature; 0 for a sequence
  std::vector<int32_t> output;     // by feature
  std::vector<int32_t> sequences;  // features, ascending
  int64_t width = 0;               // of output 0

  int32_t outputs() const { return static_cast<int32_t>(sequences.size()) + 1; }
};
OutputLayout output_layout(const Model& model);

std::string model_to_json(const Model& model);
Model model_from_json(const std::string& json);  // INVALID_ARGUMENT, UNSUPPORTED

// An optimizer alone, as it stands in a model.
std::string optimizer_to_json(const Optimizer& optimizer);
Optimizer optimizer_from_json(const std::string& json);  // INVALID_ARGUMENT

// Equal models have equal fingerprints (XXH3 of the canonical JSON).
uint64_t model_fingerprint(const Model& model);

}  // namespace shardrec::plan
