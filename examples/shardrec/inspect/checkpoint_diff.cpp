// How two checkpoints are compared: by checksums, then by values, a table at a time.
#include "inspect/checkpoint_diff.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "command/long_work.h"

namespace shardrec::cli {
namespace {

using nlohmann::json;

// Something that both checkpoints may hold: equal shapes can be compared, equal prints are equal.
struct Part {
  std::string shape;
  std::string cut;                // the boxes of a table's part; "" for what is not cut
  std::string print;              // the checksums, in order
  int64_t rows = 0, columns = 0;  // of a table's part
};
struct Key {
  std::string what, name, part;
  std::string collection{};
  auto operator<=>(const Key&) const = default;
};
using Parts = std::map<Key, Part>;

void add_boxes(const json& contents, Parts& parts) {
  // By place, so that the order in the files does not matter.
  std::map<Key, std::map<std::string, std::string>> boxes;
  for (const json& box : contents.at("boxes")) {
    const std::string collection = box.at("collection");
    const Key key{"table", box.at("table"), box.at("part"), collection};
    const auto number = [&](const char* name) { return box.at(name).get<int64_t>(); };
    std::string place;
    for (const char* name : {"row", "rows", "col", "cols"}) {
      std::string digits = std::to_string(number(name));
      place += std::string(20 - digits.size(), '0') + digits + " ";
    }
    boxes[key][place] = box.at("checksums").dump();
    Part& part = parts[key];
    part.rows = std::max(part.rows, number("row") + number("rows"));
    // A state of one value per row names the columns that it is about.
    const int64_t row_bytes =
        box.contains("row_bytes") ? number("row_bytes") : number("bytes") / number("rows");
    const bool by_row = row_bytes == 4 && key.part != "weights";
    part.columns = by_row ? 1 : std::max(part.columns, number("col") + number("cols"));
    part.shape = std::to_string(part.rows) + " x " + std::to_string(part.columns) + " " +
                 box.at("dtype").get<std::string>();
  }
  // Boxes of a delta have only some of the rows: values are compared.
  const std::string changes = contents.contains("base")
                                  ? "changes in " + contents.at("directory").get<std::string>()
                                  : std::string();
  for (const auto& [key, places] : boxes) {
    parts[key].cut = changes;
    for (const auto& [place, checksums] : places) {
      parts[key].cut += place + "; ";
      parts[key].print += checksums;
    }
  }
}

Parts parts_of(const json& contents) {
  Parts parts;
  add_boxes(contents, parts);
  const auto shape = [](const json& tensor) {
    return tensor.at("shape").dump() + tensor.at("dtype").get<std::string>();
  };
  for (const char* what : {"layers", "parameters"}) {
    for (const json& item : contents.at(what)) {
      for (const json& tensor : item.at("tensors")) {
        parts[{what, item.at("name"), tensor.at("name")}] = {
            .shape = shape(tensor), .cut = "", .print = tensor.at("checksum")};
      }
    }
  }
  for (const json& tensor : contents.at("tensors")) {
    const std::string rank = "rank " + std::to_string(tensor.at("rank").get<int>());
    parts[{"tensor", tensor.at("name"), rank}] = {
        .shape = shape(tensor), .cut = "", .print = tensor.at("checksum")};
  }
  return parts;
}

double largest_of(std::span<const float> a, std::span<const float> b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (std::isnan(difference) && !(std::isnan(a[i]) && std::isnan(b[i])) && a[i] != b[i]) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    largest = std::max(largest, difference);  // false for NaN: both are
  }
  return largest;
}

// A model of one table of another one, and of what is looked up in it.
Model model_of_table(const Model& all, const std::string& table) {
  json model = json::parse(all.to_json());
  const auto keep = [&](const char* list, const char* name) {
    json kept = json::array();
    for (const json& entry : model.at(list)) {
      if (entry.at(name) == table) kept.push_back(entry);
    }
    model[list] = kept;
  };
  keep("tables", "name");
  keep("features", "table");
  return Model::from_json(model.dump());
}

// One table of a checkpoint, on the one rank there is.
Collection load_table(const OpenCheckpoint& from, const Key& key) {
  OpenCheckpoint own = open_checkpoint(from.comm, from.directory, from.step);
  const Model model = model_of_table(own.handle.model(key.collection), key.name);
  const auto plan =
      Plan::collective(from.comm, model, PlanOptions().sharding(SHARDREC_SHARDING_TABLE_WISE));
  Collection table(from.comm, model, plan);
  own.handle.add(key.collection, table);
  const LongWork work("reading " + from.directory, true, LongWork::OnInterrupt::kCancel);
  // Of a delta without states, the weights alone are compared.
  own.handle.load_partial(R"({"version": 1, "extra": "ignore", "state": "base"})", work.control());
  return table;
}

void read_rows(Collection& table, shardrec_table_part part, int64_t row, int64_t rows,
               int64_t columns, std::vector<float>& out) {
  out.resize(static_cast<size_t>(rows * columns));
  table.read_range(0, part, row, rows, {out.data(), rows, columns});
}

shardrec_table_part part_number(const std::string& part) {
  if (part == "weights") return SHARDREC_TABLE_WEIGHTS;
  return part == "state/exp_avg_sq" ? SHARDREC_TABLE_STATE_2 : SHARDREC_TABLE_STATE;
}

std::optional<double> largest_of_table(const OpenCheckpoint& a, const OpenCheckpoint& b,
                                       const Key& key, const Part& part) {
  constexpr int64_t kBlock = int64_t{1} << 18;  // elements
  Collection first = load_table(a, key);
  Collection second = load_table(b, key);
  const int64_t rows = std::max<int64_t>(1, kBlock / part.columns);
  std::vector<float> one;
  std::vector<float> other;
  double largest = 0;
  for (int64_t row = 0; row < part.rows; row += rows) {
    const int64_t count = std::min(rows, part.rows - row);
    read_rows(first, part_number(key.part), row, count, part.columns, one);
    read_rows(second, part_number(key.part), row, count, part.columns, other);
    const double here = largest_of(one, other);
    if (std::isnan(here)) return here;
    largest = std::max(largest, here);
  }
  return largest;
}

Mlp load_layers(const OpenCheckpoint& from, const std::string& name) {
  OpenCheckpoint own = open_checkpoint(from.comm, from.directory, from.step);
  Mlp layers = own.handle.mlp(name);
  own.handle.add(name, layers);
  own.handle.load();
  return layers;
}

// Views of what the layers hold.
std::vector<std::span<const float>> parameters_of(Mlp& layers) {
  std::vector<std::span<const float>> all;
  for (int32_t i = 0; i < layers.info().parameters; ++i) {
    const Tensor value = layers.parameter(i).value;
    all.emplace_back(value.data<const float>(), static_cast<size_t>(value.elements()));
  }
  return all;
}

// The names of a stack's parameters in their order; its states are called PARAMETER.STATE.
std::vector<std::string> parameter_names(const json& contents, const std::string& stack) {
  std::vector<std::string> names;
  for (const json& item : contents.at("layers")) {
    if (item.at("name") != stack) continue;
    for (const json& tensor : item.at("tensors")) {
      const std::string name = tensor.at("name");
      if (names.empty() || !name.starts_with(names.back() + ".")) names.push_back(name);
    }
  }
  return names;
}

// Of each parameter of a stack, by name.
std::map<std::string, double> largest_of_layers(const OpenCheckpoint& a, const OpenCheckpoint& b,
                                                const std::string& stack) {
  Mlp first = load_layers(a, stack);
  Mlp second = load_layers(b, stack);
  const auto one = parameters_of(first);
  const auto other = parameters_of(second);
  const std::vector<std::string> names = parameter_names(contents_of(a), stack);
  std::map<std::string, double> largest;
  for (size_t i = 0; i < std::min({one.size(), other.size(), names.size()}); ++i) {
    if (one[i].size() == other[i].size()) largest[names[i]] = largest_of(one[i], other[i]);
  }
  return largest;
}

// Format 1 holds no models: its tables are compared by checksums only.
bool has_model(const OpenCheckpoint& checkpoint, const std::string& collection) {
  return checkpoint.handle.find_model(collection).has_value();
}

std::optional<Difference> compare_parts(const OpenCheckpoint& a, const OpenCheckpoint& b,
                                        const Key& key, const Part& one, const Part& other) {
  Difference difference{key.what, key.name, key.part, "differs"};
  if (one.shape != other.shape) {
    difference.verdict = "other shape";
    return difference;
  }
  const bool cut_alike = one.cut == other.cut;
  if (cut_alike && one.print == other.print) return std::nullopt;
  if (key.what != "table") return difference;
  if (has_model(a, key.collection) && has_model(b, key.collection)) {
    difference.largest = largest_of_table(a, b, key, one);
    // Checksums see what subtraction does not: -0.0 beside 0.0, two kinds of NaN.
    if (!cut_alike && *difference.largest == 0) return std::nullopt;
  } else if (!cut_alike) {
    difference.verdict = "cut in another way";
  }
  return difference;
}

}  // namespace

OpenCheckpoint open_checkpoint(Comm& comm, const std::string& directory, int64_t step) {
  Checkpoint handle(comm, directory);
  handle.open(step);
  const int64_t opened = handle.info().step;
  return {.comm = comm, .directory = directory, .handle = std::move(handle), .step = opened};
}

json contents_of(const OpenCheckpoint& checkpoint) {
  return json::parse(checkpoint.handle.contents_json());
}

Comparison compare(const OpenCheckpoint& a, const OpenCheckpoint& b) {
  const Parts first = parts_of(contents_of(a));
  const Parts second = parts_of(contents_of(b));
  Comparison comparison;
  for (const auto& [key, part] : first) {
    const auto found = second.find(key);
    if (found == second.end()) {
      comparison.differences.push_back({key.what, key.name, key.part, "only in A"});
      continue;
    }
    ++comparison.compared;
    if (auto difference = compare_parts(a, b, key, part, found->second)) {
      comparison.differences.push_back(std::move(*difference));
    }
  }
  for (const auto& [key, part] : second) {
    if (!first.contains(key)) {
      comparison.differences.push_back({key.what, key.name, key.part, "only in B"});
    }
  }
  std::string stack;
  std::map<std::string, double> largest;
  for (Difference& difference : comparison.differences) {
    if (difference.what != "layers" || difference.verdict != "differs") continue;
    if (std::exchange(stack, difference.name) != difference.name) {
      largest = largest_of_layers(a, b, stack);
    }
    const auto found = largest.find(difference.part);
    if (found != largest.end()) difference.largest = found->second;
  }
  return comparison;
}

}  // namespace shardrec::cli
