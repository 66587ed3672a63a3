#include "plan/model/difference.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>

#include "plan/model/names.h"

namespace shardrec::plan {
namespace {

using core::sentence;

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
  return name_of(value);
}

// Goes through two models, table by table and feature by feature, up to the first difference.
class Comparison {
 public:
  Comparison(const Model& reference, const Model& other, int other_rank)
      : reference_(reference), other_(other), rank_(other_rank) {}

  core::Error find() {
    compare_tables();
    compare_features();
    if (found_.empty()) {
      compare_optimizers("", other_.optimizer, reference_.optimizer);
      compare_table_optimizers();
    }
    const std::string found = found_.empty() ? "their JSON" : found_;
    parts_.rank = rank_;
    return {SHARDREC_DISAGREEMENT,
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
      const auto own = [table](const Model& model) {
        return std::string(model.tables[static_cast<size_t>(table)].optimizer ? "its own"
                                                                              : "the model's");
      };
      compare(sentence("the choice of the optimizer of table \"", parts_.table, "\""), own(other_),
              own(reference_));
    }
    if (found_.empty()) parts_.table.clear();
  }

  void compare_optimizers(const std::string& of, const Optimizer& there, const Optimizer& here) {
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
    compare("the momentum scale" + of, there.momentum_scale, here.momentum_scale);
    compare("row_statistics" + of, there.row_statistics, here.row_statistics);
  }

  const Model& reference_;
  const Model& other_;
  int rank_;
  std::string found_;
  core::ErrorParts parts_{};
};

}  // namespace

core::Error first_difference(const Model& reference, const Model& other, int other_rank) {
  return Comparison(reference, other, other_rank).find();
}

}  // namespace shardrec::plan
