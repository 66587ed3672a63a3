#include "replay/case_model.h"

#include <map>

namespace shardrec::cli {
namespace {

// Runs calls whose refusal means that the library lacks something, not that it is wrong.
template <typename F>
void offered(const F& calls) {
  try {
    calls();
  } catch (const ApiError& error) {
    if (error.status() != SHARDREC_UNSUPPORTED && error.status() != SHARDREC_INVALID_ARGUMENT)
      throw;
    throw Unsupported(error.what());
  }
}

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

Options optimizer_options(const CaseOptimizer& recorded) {
  Options options(SHARDREC_OPTIONS_OPTIMIZER);
  offered([&] { options.set(SHARDREC_OPTION_OPTIMIZER, recorded.type); });
  if (!recorded.other_settings.empty()) {
    throw Unsupported("The library has no option for the optimizer setting '" +
                      recorded.other_settings.front() + "'.");
  }
  offered([&] {
    options.set(SHARDREC_OPTION_LEARNING_RATE, recorded.learning_rates.front());
    options.set(SHARDREC_OPTION_WEIGHT_DECAY_MODE, decay_mode(recorded));
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
    if (recorded.shard_statistics) {
      options.set(SHARDREC_OPTION_ROW_STATISTICS, int64_t{SHARDREC_ROW_STATISTICS_SHARD});
    }
  });
  return options;
}

}  // namespace

Model make_model(const RecordedCase& recorded) {
  Model model;
  check(shardrec_model_create(nullptr, model.out()));
  for (const CaseTable& table : recorded.tables) {
    if (table.pooling != "sum" && table.pooling != "mean") {
      throw UserError("Case " + recorded.name + ": pooling is '" + table.pooling +
                      "', not sum or mean.");
    }
    const auto pooling = table.pooling == "sum" ? SHARDREC_POOLING_SUM : SHARDREC_POOLING_MEAN;
    int32_t index = 0;
    offered([&] {
      Options options(SHARDREC_OPTIONS_TABLE);
      options.set(SHARDREC_OPTION_DTYPE, table.dtype);
      check(shardrec_model_add_table(model.get(), table.name.c_str(), table.rows, table.dim,
                                     options.get(), &index));
    });
    for (const std::string& feature : table.features) {
      check(shardrec_model_add_feature(model.get(), index, feature.c_str(), pooling));
    }
  }
  const Options optimizer = optimizer_options(recorded.optimizer);
  offered([&] { check(shardrec_model_set_optimizer(model.get(), optimizer.get())); });
  return model;
}

Plan make_plan(const RecordedCase& recorded, const ReplayOptions& options, const Model& model,
               int ranks, int ranks_per_node) {
  Topology topology;
  check(shardrec_topology_create(ranks, ranks_per_node, topology.out()));
  const auto plan_by_kind = [&](const std::string& kind) {
    Options planner(SHARDREC_OPTIONS_PLAN);
    planner.set(SHARDREC_OPTION_SHARDING, kind);
    Plan plan;
    check(shardrec_plan_create(model.get(), topology.get(), planner.get(), plan.out()));
    return plan;
  };
  if (!options.sharding.empty()) {
    Plan plan = plan_by_kind(options.sharding);
    for (size_t t = 0; recorded.replicas() && t < recorded.tables.size(); ++t) {
      int32_t boxes = 0;
      check(shardrec_plan_box_count(plan.get(), static_cast<int32_t>(t), &boxes));
      if (boxes == 0) {
        throw NotComparable("The plan replicates table " + recorded.tables[t].name +
                            ", whose gradients were not averaged over all ranks.");
      }
    }
    return plan;
  }

  Plan plan;
  check(shardrec_plan_create_empty(model.get(), topology.get(), plan.out()));
  std::map<std::string, Plan> by_kind;
  for (size_t t = 0; t < recorded.tables.size(); ++t) {
    const CaseTable& table = recorded.tables[t];
    const auto index = static_cast<int32_t>(t);
    std::vector<CaseBox> boxes = table.boxes;
    if (boxes.empty() || ranks != recorded.sharding_group_size) {
      if (!by_kind.contains(table.sharding))
        by_kind.emplace(table.sharding, plan_by_kind(table.sharding));
      const shardrec_plan* kind = by_kind.at(table.sharding).get();
      int32_t count = 0;
      check(shardrec_plan_box_count(kind, index, &count));
      boxes.assign(static_cast<size_t>(count), {});
      for (int32_t b = 0; b < count; ++b) {
        CaseBox& box = boxes[static_cast<size_t>(b)];
        check(
            shardrec_plan_box(kind, index, b, &box.rank, &box.row, &box.rows, &box.col, &box.cols));
      }
    }
    if (boxes.empty()) check(shardrec_plan_add_replicated(plan.get(), index));
    for (const CaseBox& box : boxes) {
      check(
          shardrec_plan_add_box(plan.get(), index, box.rank, box.row, box.rows, box.col, box.cols));
    }
  }
  return plan;
}

}  // namespace shardrec::cli
