#include "plan/model/model.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/json.h"
#include "plan/model/names.h"

namespace shardrec::plan {

namespace {

using core::fail;
using core::sentence;

constexpr int64_t kMostRows = int64_t{1} << 40;
constexpr int64_t kMostDim = 65536;
// Of all tables together, so that sums of bytes of weights and states never overflow.
constexpr int64_t kMostElements = int64_t{1} << 58;

void check_name(const char* what, const std::string& name) {
  if (name.empty()) {
    fail(SHARDREC_INVALID_ARGUMENT, sentence("a ", what, "'s name is empty; it needs a name"));
  }
  if (!core::is_utf8(name)) {
    fail(SHARDREC_INVALID_ARGUMENT, sentence("a ", what, "'s name is not valid UTF-8"));
  }
  const bool control = std::any_of(name.begin(), name.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
  if (control) {
    fail(SHARDREC_INVALID_ARGUMENT, sentence("a ", what, "'s name holds a control character"));
  }
}

template <class Named>
void check_unique(const char* what, const std::vector<Named>& present, const std::string& name) {
  for (size_t i = 0; i < present.size(); ++i) {
    if (present[i].name == name) {
      fail(SHARDREC_INVALID_ARGUMENT,
           sentence(what, " ", i, " already has the name \"", name, "\"; names are unique"));
    }
  }
  if (present.size() >= INT32_MAX) {
    fail(SHARDREC_INVALID_ARGUMENT, sentence("the model cannot take more ", what, "s"));
  }
}

void check_range(const Table& table, const char* what, int64_t value, int64_t most) {
  if (value < 1 || value > most) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("table \"", table.name, "\" has ", value, " ", what, "; accepted: 1 to ", most),
         {.value = value, .limit = most + 1, .table = table.name});
  }
}

void check_init(const Table& table) {
  if (table.init != SHARDREC_INIT_UNIFORM && table.init != SHARDREC_INIT_ZEROS) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("table \"", table.name, "\" has an unknown initialisation ",
                  static_cast<int>(table.init)),
         {.table = table.name});
  }
  const double reach = std::sqrt(1.0 / static_cast<double>(table.rows));
  const double least = table.init_min.value_or(-reach);
  const double most = table.init_max.value_or(reach);
  if (!std::isfinite(least) || !std::isfinite(most) || least > most) {
    fail(
        SHARDREC_INVALID_ARGUMENT,
        sentence("the initial values of table \"", table.name,
                 "\" have no range: it takes finite numbers, init_min <= init_max (defaults: minus "
                 "and plus sqrt(1 / rows))"),
        {.table = table.name});
  }
}

void check_number(const char* what, double value, double below) {
  if (!std::isfinite(value) || value < 0 || value >= below) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("the optimizer's ", what, " is not a finite number in [0, ",
                  below == 1 ? "1)" : "infinity)"));
  }
}

void check_momentum_scale(const Optimizer& optimizer) {
  const double scale = optimizer.momentum_scale;
  if (!(scale >= 1 && scale <= 65536)) {
    fail(SHARDREC_INVALID_ARGUMENT, "the optimizer's momentum_scale is not a number in [1, 65536]");
  }
  if (scale != 1 && optimizer.kind != SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD) {
    fail(SHARDREC_UNSUPPORTED, sentence("the optimizer ", name_of(optimizer.kind),
                                        " has no momentum_scale, which is rowwise_adagrad's"));
  }
}

void check_dtype(const Table& table) {
  const bool is_16 = table.dtype == SHARDREC_FLOAT16 || table.dtype == SHARDREC_BFLOAT16;
  if (table.dtype != SHARDREC_FLOAT32 && !is_16) {
    fail(table.dtype == SHARDREC_FLOAT64 ? SHARDREC_UNSUPPORTED : SHARDREC_INVALID_ARGUMENT,
         sentence("table \"", table.name, "\" has dtype ", name_of(table.dtype),
                  "; tables are float32, float16 or bfloat16"),
         {.table = table.name});
  }
  if (!value_of<shardrec_rounding>(name_of(table.rounding))) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("table \"", table.name,
                  "\" has an unknown rounding; accepted: ", names_of<shardrec_rounding>()),
         {.table = table.name});
  }
  if (table.rounding == SHARDREC_ROUNDING_STOCHASTIC && !is_16) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("table \"", table.name,
                  "\" is float32 and has nothing to round; stochastic rounding is for float16 and "
                  "bfloat16"),
         {.table = table.name});
  }
}

// The weight decay that the optimizer's formula has. Its kind was checked.
void check_decay(const Optimizer& optimizer) {
  const compute::OptimizerFacts& facts = *compute::find_facts(optimizer.kind);
  if ((optimizer.weight_decay_mode == SHARDREC_WEIGHT_DECAY_L2 && !facts.l2) ||
      (optimizer.weight_decay_mode == SHARDREC_WEIGHT_DECAY_DECOUPLE && !facts.decouple)) {
    fail(SHARDREC_UNSUPPORTED, sentence("the optimizer ", facts.name, " has no weight_decay_mode ",
                                        name_of(optimizer.weight_decay_mode),
                                        "; it takes none and ", facts.l2 ? "l2" : "decouple"));
  }
}

void check_optimizer_kind(shardrec_optimizer kind) {
  const compute::OptimizerFacts* const known = compute::find_facts(kind);
  if (known != nullptr && known->of_tables) return;
  std::string accepted;
  for (const compute::OptimizerFacts& facts : compute::kOptimizers) {
    if (!facts.of_tables) continue;
    accepted += accepted.empty() ? "" : ", ";
    accepted += facts.name;
  }
  if (known != nullptr) {
    fail(SHARDREC_UNSUPPORTED,
         sentence("tables have no optimizer ", known->name,
                  ", which is for layers and DDP parameters; accepted: ", accepted));
  }
  fail(SHARDREC_INVALID_ARGUMENT,
       sentence("there is no optimizer ", static_cast<int>(kind), "; accepted: ", accepted));
}

void check_optimizer(const Optimizer& optimizer) {
  check_optimizer_kind(optimizer.kind);
  constexpr double kNoBound = INFINITY;
  check_number("learning_rate", optimizer.learning_rate, kNoBound);
  check_number("eps", optimizer.eps, kNoBound);
  check_number("weight_decay", optimizer.weight_decay, kNoBound);
  check_number("max_gradient", optimizer.max_gradient, kNoBound);
  check_number("beta1", optimizer.beta1, 1);
  check_number("beta2", optimizer.beta2, 1);
  check_number("momentum", optimizer.momentum, 1);
  check_number("eta", optimizer.eta, kNoBound);
  check_number("max_norm", optimizer.max_norm, kNoBound);
  check_momentum_scale(optimizer);
  if (!value_of<shardrec_weight_decay>(name_of(optimizer.weight_decay_mode))) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("the optimizer's weight_decay_mode is unknown; accepted: ",
                  names_of<shardrec_weight_decay>()));
  }
  if (!value_of<shardrec_row_statistics>(name_of(optimizer.row_statistics))) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("the optimizer's row_statistics are unknown; accepted: ",
                  names_of<shardrec_row_statistics>()));
  }
  check_decay(optimizer);
}

}  // namespace

std::span<const OptimizerState> states_of(shardrec_optimizer kind) noexcept {
  const compute::OptimizerFacts* const facts = compute::find_facts(kind);
  if (facts == nullptr || !facts->of_tables) return {};
  return std::span(facts->states).first(facts->state_count());
}

int32_t add_table(Model& model, Table table) {
  check_name("table", table.name);
  check_unique("table", model.tables, table.name);
  check_range(table, "rows", table.rows, kMostRows);
  check_range(table, "columns", table.dim, kMostDim);
  int64_t elements = table.rows * table.dim;
  for (const Table& other : model.tables) elements += other.rows * other.dim;
  if (elements > kMostElements) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("with table \"", table.name, "\" the model has ", elements,
                  " elements; all tables together hold at most ", kMostElements),
         {.table = table.name});
  }
  check_dtype(table);
  check_init(table);
  if (!value_of<shardrec_out_of_range>(name_of(table.out_of_range))) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("table \"", table.name, "\" has an unknown out_of_range ",
                  static_cast<int>(table.out_of_range),
                  "; accepted: ", names_of<shardrec_out_of_range>()),
         {.table = table.name});
  }
  if (table.limits.min_columns < 1 || table.limits.min_columns > table.dim) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("boxes of table \"", table.name, "\" are to have at least ",
                  table.limits.min_columns, " columns (MIN_COLUMNS); accepted: 1 to its dim, ",
                  table.dim),
         {.value = table.limits.min_columns, .limit = table.dim + 1, .table = table.name});
  }
  if (table.optimizer) check_optimizer(*table.optimizer);
  model.tables.push_back(std::move(table));
  return static_cast<int32_t>(model.tables.size() - 1);
}

void add_feature(Model& model, Feature feature) {
  check_name("feature", feature.name);
  check_unique("feature", model.features, feature.name);
  if (feature.table < 0 || feature.table >= std::ssize(model.tables)) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("feature \"", feature.name, "\" names table ", feature.table, "; the model has ",
                  model.tables.size(), " tables"),
         {.value = feature.table, .limit = std::ssize(model.tables), .feature = feature.name});
  }
  if (!value_of<shardrec_pooling>(name_of(feature.pooling))) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("feature \"", feature.name, "\" has an unknown pooling ",
                  static_cast<int>(feature.pooling), "; accepted: ", names_of<shardrec_pooling>()),
         {.feature = feature.name});
  }
  model.features.push_back(std::move(feature));
}

void set_optimizer(Model& model, const Optimizer& optimizer) {
  check_optimizer(optimizer);
  model.optimizer = optimizer;
}

void set_table_optimizer(Model& model, int32_t table, const std::optional<Optimizer>& optimizer) {
  if (table < 0 || table >= std::ssize(model.tables)) {
    fail(SHARDREC_NOT_FOUND,
         sentence("there is no table ", table, "; the model has ", model.tables.size(), " tables"),
         {.value = table, .limit = std::ssize(model.tables)});
  }
  if (optimizer) check_optimizer(*optimizer);
  model.tables[static_cast<size_t>(table)].optimizer = optimizer;
}

OutputLayout output_layout(const Model& model) {
  std::vector<int64_t> first(model.tables.size() + 1, 0);
  for (const Feature& feature : model.features) {
    if (feature.pooling == SHARDREC_POOLING_NONE) continue;
    const auto table = static_cast<size_t>(feature.table);
    first[table + 1] += model.tables[table].dim;
  }
  for (size_t table = 0; table < model.tables.size(); ++table) first[table + 1] += first[table];
  OutputLayout layout;
  layout.width = first.back();
  layout.column.reserve(model.features.size());
  for (size_t f = 0; f < model.features.size(); ++f) {
    if (model.features[f].pooling == SHARDREC_POOLING_NONE) {
      layout.column.push_back(0);
      layout.sequences.push_back(static_cast<int32_t>(f));
      layout.output.push_back(static_cast<int32_t>(layout.sequences.size()));
      continue;
    }
    const auto table = static_cast<size_t>(model.features[f].table);
    layout.column.push_back(first[table]);
    layout.output.push_back(0);
    first[table] += model.tables[table].dim;
  }
  return layout;
}

}  // namespace shardrec::plan
