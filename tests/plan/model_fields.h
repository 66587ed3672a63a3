// Models that differ in one field, for every field that there is: what is compared, hashed or
// written as text is tested with each of them. A field that is added to a struct does not compile
// here before it is given another value.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/model/model.h"

namespace shardrec::plan {

// A model in which each field alone may change and the model stays valid.
inline Model model_of_all_fields() {
  const Optimizer optimizer{.kind = SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD,
                            .weight_decay_mode = SHARDREC_WEIGHT_DECAY_L2};
  Model model;
  set_optimizer(model, optimizer);
  add_table(model, {.name = "a", .rows = 40, .dim = 8, .dtype = SHARDREC_BFLOAT16});
  add_table(model, {.name = "b", .rows = 50, .dim = 4, .optimizer = optimizer});
  add_feature(model, {.name = "f", .table = 0, .pooling = SHARDREC_POOLING_SUM});
  add_feature(model, {.name = "g", .table = 1, .pooling = SHARDREC_POOLING_SUM});
  return model;
}

// One field has another value; `named` is how sentences call it.
struct ModelDifference {
  std::string named;
  Model model;
};

class ModelDifferences {
 public:
  std::vector<ModelDifference> all() {
    auto& [tables, features, optimizer] = model_;
    add_optimizer("", optimizer);
    add_table(tables[0]);
    add_optimizer(" of table \"b\"", *tables[1].optimizer);
    add_feature(features[0]);
    change("the number of tables", tables, [&] {
      auto more = tables;
      more.push_back({.name = "c", .rows = 1, .dim = 1});
      return more;
    }());
    change("the number of features", features, [&] {
      auto more = features;
      more.push_back({.name = "h", .table = 0});
      return more;
    }());
    return std::move(differences_);
  }

 private:
  // The model as it is, but for a field of it.
  template <class Value>
  void change(const std::string& named, Value& field, const Value& other) {
    const Model before = model_;
    field = other;
    differences_.push_back({named, model_});
    model_ = before;  // in place: references to fields stay valid
  }

  void add_optimizer(const std::string& of, Optimizer& fields) {
    auto& [kind, learning_rate, eps, weight_decay, weight_decay_mode, max_gradient, beta1, beta2,
           momentum, eta, max_norm, momentum_scale, row_statistics] = fields;
    change("the optimizer" + of, kind, SHARDREC_OPTIMIZER_SGD);
    change("the learning rate" + of, learning_rate, 0.5);
    change("eps" + of, eps, 0.5);
    change("the weight decay" + of, weight_decay, 0.5);
    change("the weight decay's mode" + of, weight_decay_mode, SHARDREC_WEIGHT_DECAY_DECOUPLE);
    change("the largest gradient" + of, max_gradient, 0.5);
    change("beta1" + of, beta1, 0.5);
    change("beta2" + of, beta2, 0.5);
    change("the momentum" + of, momentum, 0.5);
    change("eta" + of, eta, 0.5);
    change("the largest norm" + of, max_norm, 0.5);
    change("the momentum scale" + of, momentum_scale, 2.0);
    change("row_statistics" + of, row_statistics, SHARDREC_ROW_STATISTICS_SHARD);
  }

  void add_table(Table& fields) {
    auto& [name, rows, dim, dtype, init, init_min, init_max, rounding, out_of_range, optimizer,
           limits] = fields;
    auto& [sharding, ranks, min_columns] = limits;
    const std::string of = " of table \"a\"";
    change("the name of table 0", name, std::string("other"));
    change("the number of rows" + of, rows, int64_t{41});
    change("the dim" + of, dim, int64_t{12});
    change("the dtype" + of, dtype, SHARDREC_FLOAT16);
    change("the init" + of, init, SHARDREC_INIT_ZEROS);
    change("init_min" + of, init_min, std::optional(-0.5));
    change("init_max" + of, init_max, std::optional(0.5));
    change("the rounding" + of, rounding, SHARDREC_ROUNDING_STOCHASTIC);
    change("out_of_range" + of, out_of_range, SHARDREC_OUT_OF_RANGE_DROP);
    change("the choice of the optimizer" + of, optimizer, std::optional(model_.optimizer));
    change("allowed_sharding" + of, sharding, ShardingKinds::of_text("row_wise").value());
    change("allowed_ranks" + of, ranks, RankSet::of_text("0-1").value());
    change("min_columns" + of, min_columns, int64_t{2});
  }

  void add_feature(Feature& fields) {
    auto& [name, table, pooling] = fields;
    change("the name of feature 0", name, std::string("other"));
    change("the table of feature \"f\"", table, int32_t{1});
    change("the pooling of feature \"f\"", pooling, SHARDREC_POOLING_MEAN);
  }

  Model model_ = model_of_all_fields();
  std::vector<ModelDifference> differences_;
};

inline std::vector<ModelDifference> models_that_differ() { return ModelDifferences().all(); }

}  // namespace shardrec::plan
