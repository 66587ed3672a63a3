#include "options.h"

#include <array>
#include <charconv>
#include <cmath>
#include <memory>

#include "compute/optimizer.h"
#include "guard.h"
#include "option_table.h"

namespace shardrec::capi {
namespace {

using core::fail;
using core::sentence;

// A real number in the shortest form that reads back to the same value.
std::string real_text(double value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  return {digits.data(), end.ptr};
}

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  // C's notation allows a plus sign, from_chars does not.
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  Number value{};
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string accepted_by(const OptionRow& row) {
  return row.type == OptionType::kChoice ? sentence(row.choices->lead, row.choices->list())
                                         : std::string(row.accepted);
}

[[noreturn]] void refuse(const OptionRow& row, std::string_view value,
                         core::ErrorParts parts = {}) {
  fail(SHARDREC_INVALID_ARGUMENT,
       sentence(row.name, " cannot be ", value, "; ", accepted_by(row), " is accepted"),
       std::move(parts));
}

[[noreturn]] void refuse_type(const OptionRow& row) {
  const char* what = " is an integer; the functions ending in _i64 or _text take it";
  if (row.type == OptionType::kReal) {
    what = " is a real number; the functions ending in _f64 or _text take it";
  }
  if (row.type == OptionType::kText) what = " is a text; the functions ending in _text take it";
  fail(SHARDREC_INVALID_ARGUMENT, sentence(row.name, what));
}

bool is_integer(const OptionRow& row) {
  return row.type == OptionType::kInteger || row.type == OptionType::kChoice;
}

void check_choice(const OptionRow& row, int64_t value) {
  const std::string name = row.choices->name(value);
  if (name.empty()) refuse(row, sentence(value), {.value = value});
  const bool of_tables =
      value == SHARDREC_FLOAT32 || value == SHARDREC_FLOAT16 || value == SHARDREC_BFLOAT16;
  if (row.key == SHARDREC_OPTION_DTYPE && !of_tables) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence(row.name, " is ", name, "; float32, float16 and bfloat16 are accepted"),
         {.value = value});
  }
}

}  // namespace

Options::Options(shardrec_options_kind kind) : kind_(kind) {
  if (options_kind_name(kind) == nullptr) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("there is no kind of options ", static_cast<int64_t>(kind),
                  "; SHARDREC_OPTIONS_OPTIMIZER to SHARDREC_OPTIONS_FSDP are accepted"),
         {.value = kind});
  }
}

const OptionRow& Options::row(shardrec_option key) const {
  const OptionRow* found = find_option(key);
  if (found == nullptr) {
    fail(SHARDREC_INVALID_ARGUMENT, sentence("there is no option ", static_cast<int64_t>(key)),
         {.value = key});
  }
  if (!found->taken_by(kind_)) {
    std::string keys;
    for (const OptionRow& other : option_rows()) {
      if (!other.taken_by(kind_)) continue;
      if (!keys.empty()) keys += ", ";
      keys += other.name;
    }
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("options of kind ", options_kind_name(kind_), " do not take ", found->name,
                  "; they take ", keys),
         {.value = key});
  }
  return *found;
}

void Options::set_i64(shardrec_option key, int64_t value) {
  const OptionRow& option = row(key);
  if (!is_integer(option)) refuse_type(option);
  if (option.type == OptionType::kChoice) {
    check_choice(option, value);
  } else if (value < option.least || value > option.most) {
    refuse(option, sentence(value), {.value = value});
  }
  values_[key] = value;
}

void Options::set_f64(shardrec_option key, double value) {
  const OptionRow& option = row(key);
  if (option.type != OptionType::kReal) refuse_type(option);
  if (!std::isfinite(value) || !option.real_accepted(value)) refuse(option, real_text(value));
  values_[key] = value;
}

void Options::set_text(shardrec_option key, std::string_view text) {
  const OptionRow& option = row(key);
  if (option.type == OptionType::kText) {
    // Not shown: it may be a secret.
    if (!option.text_accepted(text))
      refuse(option, sentence("this text of ", text.size(), " bytes"));
    values_[key] = std::string(text);
    return;
  }
  if (option.type == OptionType::kReal) {
    const std::optional<double> value = parse_number<double>(text);
    if (!value.has_value()) refuse(option, sentence("\"", text, "\""));
    return set_f64(key, *value);
  }
  const std::optional<int64_t> value = option.type == OptionType::kChoice
                                           ? option.choices->value(text)
                                           : parse_number<int64_t>(text);
  if (!value.has_value()) refuse(option, sentence("\"", text, "\""));
  set_i64(key, *value);
}

std::optional<int64_t> Options::find_i64(shardrec_option key) const {
  const OptionRow& option = row(key);
  if (!is_integer(option)) refuse_type(option);
  const auto found = values_.find(key);
  return found == values_.end() ? option.default_i64 : std::get<int64_t>(found->second);
}

std::optional<double> Options::find_f64(shardrec_option key) const {
  const OptionRow& option = row(key);
  if (option.type != OptionType::kReal) refuse_type(option);
  const auto found = values_.find(key);
  return found == values_.end() ? option.default_f64 : std::get<double>(found->second);
}

namespace {

template <class Number>
Number require_default(const OptionRow& row, std::optional<Number> value) {
  if (!value.has_value()) {
    fail(SHARDREC_NOT_FOUND,
         sentence(row.name,
                  " is not set, and its default depends on what the options are "
                  "used for"));
  }
  return *value;
}

}  // namespace

int64_t Options::i64(shardrec_option key) const { return require_default(row(key), find_i64(key)); }

double Options::f64(shardrec_option key) const { return require_default(row(key), find_f64(key)); }

std::string Options::text(shardrec_option key) const {
  const OptionRow& option = row(key);
  if (option.type == OptionType::kText) {
    const auto found = values_.find(key);
    return found == values_.end() ? option.default_text : std::get<std::string>(found->second);
  }
  if (option.type == OptionType::kReal) return real_text(f64(key));
  const int64_t value = i64(key);
  return option.type == OptionType::kChoice ? option.choices->name(value) : sentence(value);
}

Options read_options(const shardrec_options* handle, shardrec_options_kind kind) {
  if (handle == nullptr) return Options(kind);
  const auto use = enter(handle, Access::kExclusive);
  if (use->kind() != kind) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("the options are of kind ", options_kind_name(use->kind()), "; kind ",
                  options_kind_name(kind), " is accepted"),
         {.value = use->kind()});
  }
  return *use;
}

void refuse_options(const shardrec_options* handle, const char* what) {
  if (handle == nullptr) return;
  const auto use = enter(handle, Access::kExclusive);
  fail(SHARDREC_INVALID_ARGUMENT,
       sentence("no kind of options is for ", what, "; NULL is accepted"));
}

planner::PlanOptions plan_options(const shardrec_options* handle) {
  const Options options = read_options(handle, SHARDREC_OPTIONS_PLAN);
  return {.sharding = options.choice<shardrec_sharding>(SHARDREC_OPTION_SHARDING),
          .replication = options.choice<shardrec_replication>(SHARDREC_OPTION_REPLICATION),
          .batch_size = options.i64(SHARDREC_OPTION_BATCH_SIZE),
          .bag_length = options.f64(SHARDREC_OPTION_BAG_LENGTH),
          .balance = options.choice<shardrec_balance>(SHARDREC_OPTION_BALANCE)};
}

plan::Optimizer optimizer_from(const Options& options) {
  const bool of_tables = options.kind() == SHARDREC_OPTIONS_OPTIMIZER;
  const auto kind = options.choice<shardrec_optimizer>(SHARDREC_OPTION_OPTIMIZER);
  // Optimizers of layers that have no momentum keep none: what they are described by in files
  // stays as it was before there was one that has.
  const compute::OptimizerFacts* const facts = compute::find_facts(kind);
  const bool has_momentum = of_tables || (facts != nullptr && facts->momentum);
  return {
      .kind = kind,
      .learning_rate = options.f64(SHARDREC_OPTION_LEARNING_RATE),
      .eps = options.f64(SHARDREC_OPTION_EPS),
      .weight_decay = options.f64(SHARDREC_OPTION_WEIGHT_DECAY),
      .weight_decay_mode = options.choice<shardrec_weight_decay>(SHARDREC_OPTION_WEIGHT_DECAY_MODE),
      .max_gradient = options.f64(SHARDREC_OPTION_MAX_GRADIENT),
      .beta1 = options.f64(SHARDREC_OPTION_BETA1),
      .beta2 = options.f64(SHARDREC_OPTION_BETA2),
      .momentum = has_momentum ? options.f64(SHARDREC_OPTION_MOMENTUM) : 0,
      .eta = of_tables ? options.f64(SHARDREC_OPTION_ETA) : 0,
      .max_norm = of_tables ? options.f64(SHARDREC_OPTION_MAX_NORM) : 0,
      .momentum_scale = of_tables ? options.f64(SHARDREC_OPTION_MOMENTUM_SCALE) : 1,
      .row_statistics = options.choice<shardrec_row_statistics>(SHARDREC_OPTION_ROW_STATISTICS),
  };
}

plan::Table table_from(const Options& options, std::string_view name, int64_t rows, int64_t dim) {
  return {
      .name = std::string(name),
      .rows = rows,
      .dim = dim,
      .dtype = options.choice<shardrec_dtype>(SHARDREC_OPTION_DTYPE),
      .init = options.choice<shardrec_init>(SHARDREC_OPTION_INIT),
      .init_min = options.find_f64(SHARDREC_OPTION_INIT_MIN),
      .init_max = options.find_f64(SHARDREC_OPTION_INIT_MAX),
      .rounding = options.choice<shardrec_rounding>(SHARDREC_OPTION_ROUNDING),
      .out_of_range = options.choice<shardrec_out_of_range>(SHARDREC_OPTION_OUT_OF_RANGE),
      .limits = {.sharding =
                     *plan::ShardingKinds::of_mask(options.i64(SHARDREC_OPTION_ALLOWED_SHARDING)),
                 .ranks = *plan::RankSet::of_text(options.text(SHARDREC_OPTION_ALLOWED_RANKS)),
                 .min_columns = options.i64(SHARDREC_OPTION_MIN_COLUMNS)},
  };
}

}  // namespace shardrec::capi

using shardrec::capi::Access;
using shardrec::capi::copy_text;
using shardrec::capi::enter;
using shardrec::capi::guard;
using shardrec::capi::Options;
using shardrec::capi::require_out;
using shardrec::capi::require_text;

shardrec_status shardrec_options_create(shardrec_options_kind kind, shardrec_options** out) {
  return guard([&] {
    require_out(out, "out");
    shardrec::capi::create(out, std::make_shared<Options>(kind));
  });
}

void shardrec_options_destroy(shardrec_options** options) { shardrec::capi::destroy(options); }

shardrec_status shardrec_options_set_i64(shardrec_options* options, shardrec_option key,
                                         int64_t value) {
  return guard([&] { enter(options, Access::kExclusive)->set_i64(key, value); });
}

shardrec_status shardrec_options_set_f64(shardrec_options* options, shardrec_option key,
                                         double value) {
  return guard([&] { enter(options, Access::kExclusive)->set_f64(key, value); });
}

shardrec_status shardrec_options_set_text(shardrec_options* options, shardrec_option key,
                                          const char* value) {
  return guard([&] {
    const auto use = enter(options, Access::kExclusive);
    use->set_text(key, require_text(value, "value"));
  });
}

shardrec_status shardrec_options_get_i64(const shardrec_options* options, shardrec_option key,
                                         int64_t* out) {
  return guard([&] {
    const auto use = enter(options, Access::kExclusive);
    require_out(out, "out");
    *out = use->i64(key);
  });
}

shardrec_status shardrec_options_get_f64(const shardrec_options* options, shardrec_option key,
                                         double* out) {
  return guard([&] {
    const auto use = enter(options, Access::kExclusive);
    require_out(out, "out");
    *out = use->f64(key);
  });
}

shardrec_status shardrec_options_get_text(const shardrec_options* options, shardrec_option key,
                                          char** out_text) {
  return guard([&] {
    const auto use = enter(options, Access::kExclusive);
    require_out(out_text, "out_text");
    *out_text = copy_text(use->text(key));
  });
}
