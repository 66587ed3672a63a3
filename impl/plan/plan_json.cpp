#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "core/error.h"
#include "core/hash.h"
#include "core/json.h"
#include "plan/model/names.h"
#include "plan/plan.h"
#include "plan/tiling.h"

namespace shardrec::plan {

namespace {

using core::JsonDocument;
using core::JsonValue;
using core::JsonWriter;

constexpr std::string_view kPlan = "shardrec-plan";
constexpr std::string_view kTopology = "shardrec-topology";
constexpr int64_t kVersion = 1;

Box read_box(const JsonValue& json) {
  json.expect_keys({"rank", "row", "rows", "col", "cols"});
  Box box;
  box.rank = static_cast<int32_t>(json.at("rank").integer(0, INT32_MAX));
  box.cells.row = json.at("row").integer(0, INT64_MAX);
  box.cells.rows = json.at("rows").integer(1, INT64_MAX);
  box.cells.col = json.at("col").integer(0, INT64_MAX);
  box.cells.cols = json.at("cols").integer(1, INT64_MAX);
  return box;
}

// Runs a step of building a plan or topology; its complaint then says where in the JSON it arose.
template <class Step>
void at_place(const JsonValue& value, const Step& step, const char* what = "plan") {
  try {
    step();
  } catch (const core::Error& error) {
    core::fail(error.status(), core::sentence(what, ": ", value.place(), ": ", error.sentence()),
               error.parts());
  }
}

Topology read_topology(const JsonValue& json, const char* what) {
  Topology topology;
  topology.ranks = static_cast<int32_t>(json.at("ranks").integer(1, INT32_MAX));
  topology.ranks_per_node = static_cast<int32_t>(json.at("ranks_per_node").integer(1, INT32_MAX));
  at_place(json.at("ranks"), [&] { check_topology(topology); }, what);
  return topology;
}

void read_table(const JsonValue& json, const Table& table, const Topology& topology,
                TablePlan& plan) {
  if (json.at("rows").integer(1, INT64_MAX) != table.rows ||
      json.at("dim").integer(1, INT64_MAX) != table.dim) {
    json.fail(core::sentence("table \"", table.name, "\" has ", table.rows, " rows and ", table.dim,
                             " columns in the model, ", json.at("rows").integer(1, INT64_MAX),
                             " and ", json.at("dim").integer(1, INT64_MAX), " in the plan"));
  }
  plan.replicated = json.at("replicated").boolean();
  if (const auto member = json.find("replication")) {
    const auto value = value_of<shardrec_replication>(member->text());
    if (!value || *value == SHARDREC_REPLICATION_AUTO) {
      member->fail("\"" + member->text() +
                   "\" is no way of replication; accepted: samples, rows, dense");
    }
    if (!plan.replicated) member->fail("the table is not replicated");
    plan.replication = *value;
  }
  const JsonValue boxes = json.at("boxes");
  plan.boxes.reserve(static_cast<size_t>(boxes.array_size()));
  for (auto box = boxes.first(); box; box = box->next()) {
    plan.boxes.push_back(read_box(*box));
    at_place(*box, [&] { check_box(table, topology, plan.boxes.back()); });
  }
  std::sort(plan.boxes.begin(), plan.boxes.end(), [](const Box& a, const Box& b) {
    return a.cells.row == b.cells.row && a.cells.col == b.cells.col ? a.rank < b.rank
                                                                    : before(a.cells, b.cells);
  });
  at_place(json, [&] { check_table_tiling(table, topology, plan); });
}

}  // namespace

std::string plan_to_json(const Plan& plan, const Model& model) {
  JsonWriter json;
  json.begin_object(JsonWriter::Style::kLines);
  json.key("format").text(core::sentence(kPlan, "-", kVersion));
  json.key("ranks").integer(plan.topology.ranks);
  json.key("ranks_per_node").integer(plan.topology.ranks_per_node);
  json.key("tables").begin_array(JsonWriter::Style::kLines);
  for (size_t i = 0; i < plan.tables.size(); ++i) {
    const Table& table = model.tables[i];
    json.begin_object();
    json.key("name").text(table.name);
    json.key("rows").integer(table.rows);
    json.key("dim").integer(table.dim);
    json.key("replicated").boolean(plan.tables[i].replicated);
    if (plan.tables[i].replicated) {
      json.key("replication").text(name_of(plan.tables[i].replication));
    }
    json.key("boxes").begin_array(JsonWriter::Style::kLines);
    for (const Box& box : plan.tables[i].boxes) {
      json.begin_object();
      json.key("rank").integer(box.rank);
      json.key("row").integer(box.cells.row);
      json.key("rows").integer(box.cells.rows);
      json.key("col").integer(box.cells.col);
      json.key("cols").integer(box.cells.cols);
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.take();
}

Plan plan_from_json(const Model& model, const std::string& text) {
  const JsonDocument document(text, "plan", SHARDREC_INVALID_ARGUMENT);
  const JsonValue root = document.root();
  root.expect_keys({"format", "ranks", "ranks_per_node", "tables"});
  core::require_format(root.at("format"), kPlan, kVersion);
  Plan plan;
  plan.topology = read_topology(root, "plan");

  std::unordered_map<std::string_view, size_t> index_of;
  for (size_t i = 0; i < model.tables.size(); ++i) index_of.emplace(model.tables[i].name, i);
  std::vector<bool> seen(model.tables.size(), false);
  plan.tables.resize(model.tables.size());
  const JsonValue tables = root.at("tables");
  (void)tables.array_size();
  for (auto json = tables.first(); json; json = json->next()) {
    json->expect_keys({"name", "rows", "dim", "replicated", "replication", "boxes"});
    const JsonValue name = json->at("name");
    const auto found = index_of.find(name.text());
    if (found == index_of.end()) name.fail("the model has no table \"" + name.text() + "\"");
    if (seen[found->second]) name.fail("table \"" + name.text() + "\" stands in the plan twice");
    seen[found->second] = true;
    read_table(*json, model.tables[found->second], plan.topology, plan.tables[found->second]);
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    if (!seen[i]) tables.fail("table \"" + model.tables[i].name + "\" of the model is missing");
  }
  return plan;
}

std::string topology_to_json(const Topology& topology) {
  JsonWriter json;
  json.begin_object();
  json.key("format").text(core::sentence(kTopology, "-", kVersion));
  json.key("ranks").integer(topology.ranks);
  json.key("ranks_per_node").integer(topology.ranks_per_node);
  json.end_object();
  return json.take();
}

Topology topology_from_json(const std::string& text) {
  const JsonDocument document(text, "topology", SHARDREC_INVALID_ARGUMENT);
  const JsonValue root = document.root();
  root.expect_keys({"format", "ranks", "ranks_per_node"});
  core::require_format(root.at("format"), kTopology, kVersion);
  return read_topology(root, "topology");
}

uint64_t plan_fingerprint(const Plan& plan, const Model& model) {
  return core::hash64(0, plan_to_json(plan, model));
}

}  // namespace shardrec::plan
