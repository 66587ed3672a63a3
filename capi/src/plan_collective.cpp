#include "plan_collective.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/collective/agree.h"
#include "guard.h"
#include "options.h"
#include "plan/names.h"

namespace shardrec::capi {
namespace {

using core::sentence;

// What is compared before anything longer is sent.
struct Summary {
  uint64_t model = 0;
  plan::PlanOptions options;
  int32_t ranks_per_node = 1;
};

comm::Operation operation_of(const Planners& planners, CommCall call) {
  return {.name = planners.on_mesh ? "plan_collective_on_mesh" : "plan_collective",
          .kind = static_cast<uint32_t>(call),
          .detail = 0,
          .patience = comm::Patience::kSetup};
}

std::string text_of(comm::ConstBytes bytes) {
  std::string text(bytes.size(), '\0');
  if (!text.empty()) std::memcpy(text.data(), bytes.data(), bytes.size());
  return text;
}

std::string show(const std::string& value) { return sentence("\"", value, "\""); }
std::string show(int64_t value) { return sentence(value); }
std::string show(double value) {
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}
std::string show(const std::optional<double>& value) {
  return value.has_value() ? show(*value) : "its default";
}
template <class Enum>
  requires std::is_enum_v<Enum>
std::string show(Enum value) {
  return plan::name_of(value);
}

// The first difference between two models, as a sentence with its parts.
class Comparison {
 public:
  Comparison(const plan::Model& reference, const plan::Model& other, int other_rank)
      : reference_(reference), other_(other), rank_(other_rank) {}

  core::Error first_difference() {
    compare_tables();
    compare_features();
    if (found_.empty()) {
      compare_optimizers("", other_.optimizer, reference_.optimizer);
      compare_table_optimizers();
    }
    const std::string found = found_.empty() ? "their JSON" : found_;
    parts_.rank = rank_;
    return {SHARDREC_MISMATCH,
            sentence("rank ", rank_, " and rank 0 bring different models: ", found,
                     "; the same model is needed on every rank"),
            parts_};
  }

 private:
  template <class Value>
  void compare(const std::string& what, const Value& there, const Value& here) {
    if (!found_.empty() || there == here) return;
    found_ =
        sentence(what, " is ", show(there), " on rank ", rank_, " and ", show(here), " on rank 0");
  }

  void compare_tables() {
    const auto& there = other_.tables;
    const auto& here = reference_.tables;
    for (size_t i = 0; i < std::min(there.size(), here.size()) && found_.empty(); ++i) {
      parts_.table = here[i].name;
      compare(sentence("the name of table ", i), there[i].name, here[i].name);
      const std::string of = sentence(" of table \"", here[i].name, "\"");
      compare("the number of rows" + of, there[i].rows, here[i].rows);
      compare("the dim" + of, there[i].dim, here[i].dim);
      compare("the dtype" + of, there[i].dtype, here[i].dtype);
      compare("the init" + of, there[i].init, here[i].init);
      compare("init_min" + of, there[i].init_min, here[i].init_min);
      compare("init_max" + of, there[i].init_max, here[i].init_max);
      compare("the rounding" + of, there[i].rounding, here[i].rounding);
      compare("out_of_range" + of, there[i].out_of_range, here[i].out_of_range);
      compare("allowed_sharding" + of, there[i].limits.sharding.text(),
              here[i].limits.sharding.text());
      compare("allowed_ranks" + of, there[i].limits.ranks.text(), here[i].limits.ranks.text());
      compare("min_columns" + of, there[i].limits.min_columns, here[i].limits.min_columns);
    }
    if (found_.empty() && there.size() != here.size()) {
      const auto& longer = there.size() > here.size() ? there : here;
      parts_.table = longer[std::min(there.size(), here.size())].name;
      compare(sentence("the number of tables (the first one that is missing is \"", parts_.table,
                       "\")"),
              static_cast<int64_t>(there.size()), static_cast<int64_t>(here.size()));
    }
    if (found_.empty()) parts_.table.clear();
  }

  void compare_features() {
    if (!found_.empty()) return;
    const auto& there = other_.features;
    const auto& here = reference_.features;
    for (size_t i = 0; i < std::min(there.size(), here.size()) && found_.empty(); ++i) {
      parts_.feature = here[i].name;
      compare(sentence("the name of feature ", i), there[i].name, here[i].name);
      const std::string of = sentence(" of feature \"", here[i].name, "\"");
      compare("the table" + of, int64_t{there[i].table}, int64_t{here[i].table});
      compare("the pooling" + of, there[i].pooling, here[i].pooling);
    }
    if (found_.empty()) {
      parts_.feature.clear();
      compare("the number of features", static_cast<int64_t>(there.size()),
              static_cast<int64_t>(here.size()));
    }
  }

  // Of tables that have one of their own on either rank.
  void compare_table_optimizers() {
    for (size_t i = 0; i < reference_.tables.size() && found_.empty(); ++i) {
      const auto table = static_cast<int32_t>(i);
      parts_.table = reference_.tables[i].name;
      compare_optimizers(sentence(" of table \"", parts_.table, "\""), other_.optimizer_of(table),
                         reference_.optimizer_of(table));
      const auto own = [table](const plan::Model& model) {
        return std::string(model.tables[static_cast<size_t>(table)].optimizer ? "its own"
                                                                              : "the model's");
      };
      compare(sentence("the choice of the optimizer of table \"", parts_.table, "\""), own(other_),
              own(reference_));
    }
    if (found_.empty()) parts_.table.clear();
  }

  void compare_optimizers(const std::string& of, const plan::Optimizer& there,
                          const plan::Optimizer& here) {
    compare("the optimizer" + of, there.kind, here.kind);
    compare("the learning rate" + of, there.learning_rate, here.learning_rate);
    compare("eps" + of, there.eps, here.eps);
    compare("the weight decay" + of, there.weight_decay, here.weight_decay);
    compare("the weight decay's mode" + of, there.weight_decay_mode, here.weight_decay_mode);
    compare("the largest gradient" + of, there.max_gradient, here.max_gradient);
    compare("beta1" + of, there.beta1, here.beta1);
    compare("beta2" + of, there.beta2, here.beta2);
    compare("the momentum" + of, there.momentum, here.momentum);
    compare("eta" + of, there.eta, here.eta);
    compare("the largest norm" + of, there.max_norm, here.max_norm);
    compare("row_statistics" + of, there.row_statistics, here.row_statistics);
  }

  const plan::Model& reference_;
  const plan::Model& other_;
  int rank_;
  std::string found_;
  core::ErrorParts parts_{};
};

std::vector<Summary> gather_summaries(const Planners& planners, const Summary& mine) {
  const auto messages = planners.collectives.all_gather(
      operation_of(planners, CommCall::kPlanCompare), std::as_bytes(std::span(&mine, 1)));
  std::vector<Summary> summaries(messages.size());
  for (size_t rank = 0; rank < messages.size(); ++rank) {
    if (messages[rank].size() != sizeof(Summary)) {
      core::fail(SHARDREC_CORRUPT_DATA,
                 sentence("rank ", rank, " sent a message of ", messages[rank].size(),
                          " bytes, not ", sizeof(Summary)),
                 {.rank = static_cast<int64_t>(rank)});
    }
    std::memcpy(&summaries[rank], messages[rank].data(), sizeof(Summary));
  }
  return summaries;
}

// Rank 0 and the lowest rank that differs show their models; every rank finds the same difference.
void check_models(const Planners& planners, const plan::Model& mine,
                  const std::vector<Summary>& summaries) {
  const auto differs = std::find_if(summaries.begin(), summaries.end(), [&](const Summary& s) {
    return s.model != summaries[0].model;
  });
  if (differs == summaries.end()) return;
  const auto other = static_cast<int>(differs - summaries.begin());
  const int rank = planners.rank;
  const std::string text = rank == 0 || rank == other ? plan::model_to_json(mine) : std::string();
  const auto messages = planners.collectives.all_gather(
      operation_of(planners, CommCall::kPlanModels), std::as_bytes(std::span(text)));
  const plan::Model first = plan::model_from_json(text_of(messages[0]));
  const plan::Model second = plan::model_from_json(text_of(messages[static_cast<size_t>(other)]));
  throw Comparison(first, second, other).first_difference();
}

// What stands in an option of kind PLAN, for comparison and for people.
struct ComparedOption {
  const char* name;
  std::string (*text)(const plan::PlanOptions& options);
};
constexpr std::array kCompared = {
    ComparedOption{
        "SHARDREC_OPTION_SHARDING",
        [](const plan::PlanOptions& o) { return std::string(plan::name_of(o.sharding)); }},
    ComparedOption{
        "SHARDREC_OPTION_REPLICATION",
        [](const plan::PlanOptions& o) { return std::string(plan::name_of(o.replication)); }},
    ComparedOption{"SHARDREC_OPTION_BATCH_SIZE",
                   [](const plan::PlanOptions& o) { return sentence(o.batch_size); }},
    ComparedOption{"SHARDREC_OPTION_BAG_LENGTH",
                   [](const plan::PlanOptions& o) { return show(o.bag_length); }},
    ComparedOption{
        "SHARDREC_OPTION_BALANCE",
        [](const plan::PlanOptions& o) { return std::string(plan::name_of(o.balance)); }},
};

void check_options(const std::vector<Summary>& summaries) {
  for (size_t rank = 0; rank < summaries.size(); ++rank) {
    for (const ComparedOption& option : kCompared) {
      const std::string theirs = option.text(summaries[rank].options);
      const std::string first = option.text(summaries[0].options);
      if (theirs == first) continue;
      core::fail(SHARDREC_MISMATCH,
                 sentence(option.name, " is ", theirs, " on rank ", rank, " and ", first,
                          " on rank 0; the same options are needed on every rank"),
                 {.rank = static_cast<int64_t>(rank)});
    }
  }
}

// Sharding groups of a mesh may lie on nodes in different ways: then each rank is its own node.
plan::Topology topology_of(const Planners& planners, const std::vector<Summary>& summaries) {
  const int32_t per_node = summaries[0].ranks_per_node;
  const bool same = std::all_of(summaries.begin(), summaries.end(),
                                [&](const Summary& s) { return s.ranks_per_node == per_node; });
  return {.ranks = planners.topology.ranks, .ranks_per_node = same ? per_node : 1};
}

}  // namespace

void plan_together(const Planners& planners, const shardrec_model* model,
                   const shardrec_options* options, shardrec_plan** out) {
  auto object = std::make_shared<PlanObject>();
  Summary mine;
  mine.ranks_per_node = planners.topology.ranks_per_node;
  comm::Collectives& collectives = planners.collectives;
  comm::agree(collectives, operation_of(planners, CommCall::kPlanArguments), [&] {
    require_out(out, "out");
    object->model = *enter(model, Access::kExclusive);
    mine.model = plan::model_fingerprint(object->model);
    mine.options = plan_options(options);
    mine.options.on_mesh = planners.on_mesh;
  });
  const std::vector<Summary> summaries = gather_summaries(planners, mine);
  check_models(planners, object->model, summaries);
  check_options(summaries);

  std::string text;
  comm::agree(collectives, operation_of(planners, CommCall::kPlanMake), [&] {
    if (planners.rank != 0) return;
    object->plan = plan::make_plan(object->model, topology_of(planners, summaries), mine.options);
    text = plan::plan_to_json(object->plan, object->model);
  });
  const auto messages = collectives.all_gather(operation_of(planners, CommCall::kPlanSend),
                                               std::as_bytes(std::span(text)));
  if (planners.rank != 0) text = text_of(messages[0]);
  std::optional<Reserved<shardrec_plan>> reserved;
  comm::agree(collectives, operation_of(planners, CommCall::kPlanTake), [&] {
    reserved.emplace();
    if (planners.rank != 0) object->plan = plan::plan_from_json(object->model, text);
  });
  reserved->publish(out, std::move(object));
}

}  // namespace shardrec::capi
