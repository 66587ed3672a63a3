#include <string_view>
#include <unordered_map>

#include "core/error.h"
#include "core/hash.h"
#include "core/json.h"
#include "plan/model/model.h"
#include "plan/model/names.h"

namespace shardrec::plan {

namespace {

using core::JsonDocument;
using core::JsonValue;
using core::JsonWriter;

constexpr std::string_view kModel = "shardrec-model";
constexpr int64_t kVersion = 1;

template <class Enum>
void read_enum(const JsonValue& object, std::string_view key, Enum& out) {
  const auto member = object.find(key);
  if (!member) return;
  const auto value = value_of<Enum>(member->text());
  if (!value) member->fail("\"" + member->text() + "\" is unknown; accepted: " + names_of<Enum>());
  out = *value;
}

void read_number(const JsonValue& object, std::string_view key, double& out) {
  if (const auto member = object.find(key)) out = member->number();
}

// Runs a step of building the model; its complaint then says where in the JSON it arose.
template <class Step>
void at_place(const JsonValue& value, const Step& step) {
  try {
    step();
  } catch (const core::Error& error) {
    core::fail(error.status(), "model: " + value.place() + ": " + error.sentence(), error.parts());
  }
}

Optimizer read_optimizer(const JsonValue& json) {
  json.expect_keys({"type", "learning_rate", "eps", "weight_decay", "weight_decay_mode",
                    "max_gradient", "beta1", "beta2", "momentum", "eta", "max_norm",
                    "momentum_scale", "row_statistics"});
  Optimizer optimizer;
  read_enum(json, "type", optimizer.kind);
  read_number(json, "learning_rate", optimizer.learning_rate);
  read_number(json, "eps", optimizer.eps);
  read_number(json, "weight_decay", optimizer.weight_decay);
  read_enum(json, "weight_decay_mode", optimizer.weight_decay_mode);
  read_number(json, "max_gradient", optimizer.max_gradient);
  read_number(json, "beta1", optimizer.beta1);
  read_number(json, "beta2", optimizer.beta2);
  read_number(json, "momentum", optimizer.momentum);
  read_number(json, "eta", optimizer.eta);
  read_number(json, "max_norm", optimizer.max_norm);
  read_number(json, "momentum_scale", optimizer.momentum_scale);
  read_enum(json, "row_statistics", optimizer.row_statistics);
  return optimizer;
}

void write_optimizer(JsonWriter& json, const Optimizer& optimizer) {
  json.key("optimizer").begin_object();
  json.key("type").text(name_of(optimizer.kind));
  json.key("learning_rate").number(optimizer.learning_rate);
  json.key("eps").number(optimizer.eps);
  json.key("weight_decay").number(optimizer.weight_decay);
  json.key("weight_decay_mode").text(name_of(optimizer.weight_decay_mode));
  json.key("max_gradient").number(optimizer.max_gradient);
  json.key("beta1").number(optimizer.beta1);
  json.key("beta2").number(optimizer.beta2);
  json.key("momentum").number(optimizer.momentum);
  json.key("eta").number(optimizer.eta);
  json.key("max_norm").number(optimizer.max_norm);
  if (optimizer.momentum_scale != 1) json.key("momentum_scale").number(optimizer.momentum_scale);
  json.key("row_statistics").text(name_of(optimizer.row_statistics));
  json.end_object();
}

Limits read_limits(const JsonValue& json) {
  Limits limits;
  if (const auto member = json.find("allowed_sharding")) {
    std::string names;
    if (member->array_size() == 0) member->fail("a table is allowed at least one kind of sharding");
    for (auto name = member->first(); name; name = name->next()) {
      const auto kind = value_of<shardrec_sharding>(name->text());
      if (!kind || !ShardingKinds().has(*kind)) {
        name->fail("\"" + name->text() +
                   "\" is no kind of sharding of one table; accepted: " + ShardingKinds().names());
      }
      names += (names.empty() ? "" : ",") + name->text();
    }
    limits.sharding = *ShardingKinds::of_text(names);
  }
  if (const auto member = json.find("allowed_ranks")) {
    const auto ranks = RankSet::of_text(member->text());
    if (!ranks) member->fail("\"" + member->text() + "\" are no ranks, such as \"0-3, 7\"");
    limits.ranks = *ranks;
  }
  if (const auto member = json.find("min_columns")) limits.min_columns = member->integer(1, 65536);
  return limits;
}

void write_limits(JsonWriter& json, const Limits& limits) {
  if (!limits.sharding.is_all()) {
    json.key("allowed_sharding").begin_array();
    for (int kind = SHARDREC_SHARDING_TABLE_WISE; kind <= SHARDREC_SHARDING_DATA_PARALLEL; ++kind) {
      const auto named = static_cast<shardrec_sharding>(kind);
      if (limits.sharding.has(named)) json.text(name_of(named));
    }
    json.end_array();
  }
  if (!limits.ranks.is_all()) json.key("allowed_ranks").text(limits.ranks.text());
  if (limits.min_columns != 1) json.key("min_columns").integer(limits.min_columns);
}

Table read_table(const JsonValue& json) {
  json.expect_keys({"name", "rows", "dim", "dtype", "init", "init_min", "init_max", "rounding",
                    "out_of_range", "allowed_sharding", "allowed_ranks", "min_columns",
                    "optimizer"});
  Table table;
  table.name = json.at("name").text();
  table.rows = json.at("rows").integer(1, int64_t{1} << 40);
  table.dim = json.at("dim").integer(1, 65536);
  read_enum(json, "dtype", table.dtype);
  read_enum(json, "init", table.init);
  if (const auto member = json.find("init_min")) table.init_min = member->number();
  if (const auto member = json.find("init_max")) table.init_max = member->number();
  read_enum(json, "rounding", table.rounding);
  read_enum(json, "out_of_range", table.out_of_range);
  table.limits = read_limits(json);
  if (const auto member = json.find("optimizer")) table.optimizer = read_optimizer(*member);
  return table;
}

}  // namespace

std::string model_to_json(const Model& model) {
  JsonWriter json;
  json.begin_object(JsonWriter::Style::kLines);
  json.key("format").text(core::sentence(kModel, "-", kVersion));
  write_optimizer(json, model.optimizer);
  json.key("tables").begin_array(JsonWriter::Style::kLines);
  for (const Table& table : model.tables) {
    json.begin_object();
    json.key("name").text(table.name);
    json.key("rows").integer(table.rows);
    json.key("dim").integer(table.dim);
    json.key("dtype").text(name_of(table.dtype));
    json.key("init").text(name_of(table.init));
    if (table.init_min) json.key("init_min").number(*table.init_min);
    if (table.init_max) json.key("init_max").number(*table.init_max);
    json.key("rounding").text(name_of(table.rounding));
    json.key("out_of_range").text(name_of(table.out_of_range));
    write_limits(json, table.limits);
    if (table.optimizer) write_optimizer(json, *table.optimizer);
    json.end_object();
  }
  json.end_array();
  json.key("features").begin_array(JsonWriter::Style::kLines);
  for (const Feature& feature : model.features) {
    json.begin_object();
    json.key("name").text(feature.name);
    json.key("table").text(model.tables[static_cast<size_t>(feature.table)].name);
    json.key("pooling").text(name_of(feature.pooling));
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.take();
}

Model model_from_json(const std::string& text) {
  const JsonDocument document(text, "model", SHARDREC_INVALID_ARGUMENT);
  const JsonValue root = document.root();
  root.expect_keys({"format", "optimizer", "tables", "features"});
  core::require_format(root.at("format"), kModel, kVersion);
  Model model;
  if (const auto json = root.find("optimizer")) {
    const Optimizer optimizer = read_optimizer(*json);
    at_place(*json, [&] { set_optimizer(model, optimizer); });
  }
  std::unordered_map<std::string_view, int32_t> table_of;
  const JsonValue tables = root.at("tables");
  (void)tables.array_size();
  for (auto json = tables.first(); json; json = json->next()) {
    Table table = read_table(*json);
    int32_t index = 0;
    at_place(*json, [&] { index = add_table(model, std::move(table)); });
    table_of.emplace(json->at("name").text(), index);
  }
  if (const auto features = root.find("features")) {
    (void)features->array_size();
    for (auto json = features->first(); json; json = json->next()) {
      json->expect_keys({"name", "table", "pooling"});
      Feature feature;
      feature.name = json->at("name").text();
      const auto table = table_of.find(json->at("table").text());
      if (table == table_of.end()) {
        json->at("table").fail("there is no table \"" + json->at("table").text() + "\"");
      }
      feature.table = table->second;
      read_enum(*json, "pooling", feature.pooling);
      at_place(*json, [&] { add_feature(model, std::move(feature)); });
    }
  }
  return model;
}

std::string optimizer_to_json(const Optimizer& optimizer) {
  JsonWriter json;
  json.begin_object();
  write_optimizer(json, optimizer);
  json.end_object();
  return json.take();
}

Optimizer optimizer_from_json(const std::string& text) {
  const JsonDocument document(text, "optimizer", SHARDREC_INVALID_ARGUMENT);
  document.root().expect_keys({"optimizer"});
  return read_optimizer(document.root().at("optimizer"));
}

uint64_t model_fingerprint(const Model& model) { return core::hash64(0, model_to_json(model)); }

}  // namespace shardrec::plan
