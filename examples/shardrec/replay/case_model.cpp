// A recorded case as a model and a plan of the library.
#include "replay/case_model.h"

#include <map>

#include "command/user_error.h"

namespace shardrec::cli {
namespace {

std::string lower_case(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

// The decay that is meant where a case names none.
std::string decay_mode(const CaseOptimizer& recorded) {
  if (recorded.weight_decay_mode) return lower_case(*recorded.weight_decay_mode);
  if (recorded.type == "lars_sgd") return "l2";
  const bool decoupled = recorded.type.find("adam") != std::string::npos ||
                         recorded.type.find("lamb") != std::string::npos;
  return decoupled ? "decouple" : "none";
}

OptimizerOptions optimizer_options(const CaseOptimizer& recorded) {
  OptimizerOptions options;
  offered([&] { options.optimizer(recorded.type); });
  if (!recorded.other_settings.empty()) {
    throw Unsupported("The library has no option for the optimizer setting '" +
                      recorded.other_settings.front() + "'.");
  }
  offered([&] {
    options.learning_rate(recorded.learning_rates.front());
    options.weight_decay_mode(decay_mode(recorded));
    const auto set = [&](shardrec_option key, const std::optional<double>& value) {
      if (value) options.set(key, *value);
    };
    set(SHARDREC_OPTION_EPS, recorded.eps);
    set(SHARDREC_OPTION_WEIGHT_DECAY, recorded.weight_decay);
    set(SHARDREC_OPTION_MAX_GRADIENT, recorded.max_gradient);
    set(SHARDREC_OPTION_BETA1, recorded.beta1);
    set(SHARDREC_OPTION_BETA2, recorded.beta2);
    set(SHARDREC_OPTION_MOMENTUM, recorded.momentum);
    set(SHARDREC_OPTION_ETA, recorded.eta);
    set(SHARDREC_OPTION_MAX_NORM, recorded.max_norm);
    if (recorded.shard_statistics) options.row_statistics(SHARDREC_ROW_STATISTICS_SHARD);
  });
  return options;
}

// Of one kind of sharding for all tables.
Plan plan_by_kind(const Model& model, const Topology& topology, const std::string& kind) {
  return Plan(model, topology, PlanOptions().sharding(kind));
}

void check_replicas(const RecordedCase& recorded, const Plan& plan) {
  for (size_t t = 0; recorded.replicas() && t < recorded.tables.size(); ++t) {
    if (plan.box_count(static_cast<int32_t>(t)) == 0) {
      throw NotComparable("The plan replicates table " + recorded.tables[t].name +
                          ", whose gradients were not averaged over all ranks.");
    }
  }
}

std::vector<Plan::Box> boxes_of(const Plan& plan, int32_t table) {
  std::vector<Plan::Box> boxes;
  const int32_t count = plan.box_count(table);
  for (int32_t b = 0; b < count; ++b) boxes.push_back(plan.box(table, b));
  return boxes;
}

}  // namespace

Model make_model(const RecordedCase& recorded) {
  Model model;
  for (const CaseTable& table : recorded.tables) {
    if (table.pooling != "sum" && table.pooling != "mean") {
      throw UserError("Case " + recorded.name + ": pooling is '" + table.pooling +
                      "', not sum or mean.");
    }
    const auto pooling = table.pooling == "sum" ? SHARDREC_POOLING_SUM : SHARDREC_POOLING_MEAN;
    int32_t index = 0;
    offered([&] {
      index = model.add_table(table.name, table.rows, table.dim, TableOptions().dtype(table.dtype));
    });
    for (const std::string& feature : table.features) model.add_feature(index, feature, pooling);
  }
  const OptimizerOptions optimizer = optimizer_options(recorded.optimizer);
  offered([&] { model.set_optimizer(optimizer); });
  return model;
}

Plan make_plan(const RecordedCase& recorded, const ReplayOptions& options, const Model& model,
               int ranks, int ranks_per_node) {
  const Topology topology(ranks, ranks_per_node);
  if (!options.sharding.empty()) {
    Plan plan = plan_by_kind(model, topology, options.sharding);
    check_replicas(recorded, plan);
    return plan;
  }

  Plan plan = Plan::empty(model, topology);
  std::map<std::string, Plan> by_kind;
  for (size_t t = 0; t < recorded.tables.size(); ++t) {
    const CaseTable& table = recorded.tables[t];
    const auto index = static_cast<int32_t>(t);
    std::vector<Plan::Box> boxes = table.boxes;
    if (boxes.empty() || ranks != recorded.sharding_group_size) {
      if (!by_kind.contains(table.sharding)) {
        by_kind.emplace(table.sharding, plan_by_kind(model, topology, table.sharding));
      }
      boxes = boxes_of(by_kind.at(table.sharding), index);
    }
    if (boxes.empty()) plan.replicate(index);
    for (const Plan::Box& box : boxes) plan.add_box(index, box);
  }
  return plan;
}

}  // namespace shardrec::cli
