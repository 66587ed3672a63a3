// `shardrec plan`: which rows and columns of which table would live on which rank, and what they
// take of its memory. Plans without ranks: from a model's file, and a topology's or its numbers.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command/api.h"
#include "command/commands.h"
#include "command/numbers.h"
#include "command/text_table.h"

namespace shardrec::cli {
namespace {

struct PlanOptions {
  std::string model;
  std::string topology;
  int ranks = 0;           // 0: not given
  int ranks_per_node = 0;  // 0: not given
  std::string sharding = "auto";
  std::string replication = "auto";
  int64_t batch_size = 0;
  double bag_length = 1;
  std::string balance = "bytes";
  std::string output;
  bool json = false;
};

struct Bytes {
  int64_t weights = 0;
  int64_t states = 0;

  void add(const Bytes& more) {
    weights += more.weights;
    states += more.states;
  }
};

// A box of a plan; of a replicated table, the copy of each rank.
struct Box {
  int32_t rank = 0;
  int64_t row = 0, rows = 0, col = 0, cols = 0;
  Bytes bytes;
};

struct Table {
  std::string name;
  bool replicated = false;
  std::vector<Box> boxes;
  Bytes bytes;  // of all ranks together
};

// What the report is made of.
struct Planned {
  nlohmann::json plan;
  int32_t ranks = 0;
  std::vector<Table> tables;
  std::vector<Bytes> by_rank;
};

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file || std::filesystem::is_directory(path)) {
    throw UserError(path + " cannot be read; a file of JSON is needed.");
  }
  return text;
}

// The library's sentence says where in the JSON; which file it is, only the command knows.
template <typename Make>
void read_json(const std::string& path, const Make& make) {
  const std::string text = read_text(path);
  if (text.find('\0') != std::string::npos) {
    throw UserError(path + " holds a NUL; JSON is text.");
  }
  const shardrec_status status = make(text.c_str());
  if (status != SHARDREC_OK) throw ApiError(status, path + ": " + shardrec_last_error());
}

Topology topology_of(const PlanOptions& options) {
  Topology topology;
  if (!options.topology.empty()) {
    read_json(options.topology,
              [&](const char* json) { return shardrec_topology_from_json(json, topology.out()); });
  } else {
    const int ranks = options.ranks == 0 ? 1 : options.ranks;
    const int per_node = options.ranks_per_node == 0 ? ranks : options.ranks_per_node;
    check(shardrec_topology_create(ranks, per_node, topology.out()));
  }
  return topology;
}

Plan make_plan(const PlanOptions& options, const Model& model) {
  Options planner(SHARDREC_OPTIONS_PLAN);
  planner.set(SHARDREC_OPTION_SHARDING, options.sharding)
      .set(SHARDREC_OPTION_REPLICATION, options.replication)
      .set(SHARDREC_OPTION_BATCH_SIZE, options.batch_size)
      .set(SHARDREC_OPTION_BAG_LENGTH, options.bag_length)
      .set(SHARDREC_OPTION_BALANCE, options.balance);
  Plan plan;
  check(shardrec_plan_create(model.get(), topology_of(options).get(), planner.get(), plan.out()));
  return plan;
}

Box box_of(const Plan& plan, int32_t table, int32_t index, const nlohmann::json& shape) {
  Box box;
  if (shape.at("replicated")) {
    box.rows = shape.at("rows");
    box.cols = shape.at("dim");
  } else {
    check(shardrec_plan_box(plan.get(), table, index, &box.rank, &box.row, &box.rows, &box.col,
                            &box.cols));
  }
  check(shardrec_plan_box_bytes(plan.get(), table, index, &box.bytes.weights, &box.bytes.states));
  return box;
}

Planned read_plan(const Plan& plan, const std::string& text) {
  Planned planned;
  planned.plan = nlohmann::json::parse(text);
  planned.ranks = planned.plan.at("ranks");
  planned.by_rank.resize(static_cast<size_t>(planned.ranks));
  Bytes replicated;
  for (const auto& shape : planned.plan.at("tables")) {
    Table table{.name = shape.at("name"), .replicated = shape.at("replicated")};
    const auto index = static_cast<int32_t>(planned.tables.size());
    const size_t boxes = table.replicated ? 1 : shape.at("boxes").size();
    for (size_t b = 0; b < boxes; ++b) {
      const Box box = box_of(plan, index, static_cast<int32_t>(b), shape);
      table.bytes.add(box.bytes);
      if (!table.replicated) planned.by_rank[static_cast<size_t>(box.rank)].add(box.bytes);
      table.boxes.push_back(box);
    }
    if (table.replicated) {
      replicated.add(table.bytes);
      table.bytes.weights *= planned.ranks;
      table.bytes.states *= planned.ranks;
    }
    planned.tables.push_back(std::move(table));
  }
  for (Bytes& rank : planned.by_rank) rank.add(replicated);
  return planned;
}

std::string size_text(int64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fixed(value, 1) + " " + kUnits[unit];
}

std::string range_text(int64_t first, int64_t count) {
  return std::to_string(first) + "-" + std::to_string(first + count - 1);
}

void print_tables(const Plan& plan, const Planned& planned) {
  using Align = TextTable::Align;
  TextTable boxes({{"table", Align::kLeft},
                   {"rank"},
                   {"rows", Align::kLeft},
                   {"columns", Align::kLeft},
                   {"weights"},
                   {"states"},
                   {"total"}});
  TextTable tables({{"table", Align::kLeft}, {"weights"}, {"states"}, {"total"}});
  for (const Table& table : planned.tables) {
    for (const Box& box : table.boxes) {
      boxes.add({table.name, table.replicated ? "each" : std::to_string(box.rank),
                 range_text(box.row, box.rows), range_text(box.col, box.cols),
                 size_text(box.bytes.weights), size_text(box.bytes.states),
                 size_text(box.bytes.weights + box.bytes.states)});
    }
  }
  char* summary = nullptr;
  check(shardrec_plan_to_text(plan.get(), &summary));
  std::cout << boxes.text() << "\n" << take_text(summary);
}

nlohmann::json bytes_json(nlohmann::json about, const Bytes& bytes) {
  about["weight_bytes"] = bytes.weights;
  about["state_bytes"] = bytes.states;
  about["total_bytes"] = bytes.weights + bytes.states;
  return about;
}

void print_json(const Planned& planned) {
  nlohmann::json out{{"plan", planned.plan}};
  out["tables"] = nlohmann::json::array();
  for (const Table& table : planned.tables) {
    out["tables"].push_back(bytes_json({{"name", table.name}}, table.bytes));
  }
  out["ranks"] = nlohmann::json::array();
  for (size_t rank = 0; rank < planned.by_rank.size(); ++rank) {
    out["ranks"].push_back(bytes_json({{"rank", rank}}, planned.by_rank[rank]));
  }
  std::cout << out.dump() << "\n";
}

int plan(const PlanOptions& options) {
  Model model;
  read_json(options.model,
            [&](const char* json) { return shardrec_model_from_json(json, model.out()); });
  const Plan made = make_plan(options, model);
  char* text = nullptr;
  check(shardrec_plan_to_json(made.get(), &text));
  const std::string json = take_text(text);
  if (!options.output.empty()) {
    std::ofstream file(options.output, std::ios::binary);
    file << json << "\n";
    file.close();
    if (!file) throw UserError(options.output + " cannot be written.");
  }
  const Planned planned = read_plan(made, json);
  if (options.json) {
    print_json(planned);
    return 0;
  }
  print_tables(made, planned);
  return 0;
}

}  // namespace

Run add_plan(CLI::App& app) {
  auto options = std::make_shared<PlanOptions>();
  PlanOptions& o = *options;
  CLI::App* command = app.add_subcommand(
      "plan", "Show which rows and columns of which table would live on which rank.");
  command->add_option("--model", o.model, "File of a model's JSON, as model.h describes it")
      ->required();
  CLI::Option* topology = command->add_option("--topology", o.topology,
                                              "File of a topology's JSON, as plan.h describes it");
  command->add_option("--ranks", o.ranks, "Ranks; default: 1")
      ->check(CLI::Range(1, 1048576))
      ->excludes(topology);
  command
      ->add_option("--ranks-per-node", o.ranks_per_node,
                   "Ranks that count as one node; default: all")
      ->check(CLI::Range(1, 1048576))
      ->excludes(topology);
  command
      ->add_option(
          "--sharding", o.sharding,
          "auto, table_wise, row_wise, column_wise, table_row_wise, table_column_wise, grid, "
          "data_parallel or mixed")
      ->capture_default_str();
  command
      ->add_option("--replication", o.replication,
                   "Of replicated tables: auto, samples, rows or dense")
      ->capture_default_str();
  command
      ->add_option("--batch-size", o.batch_size,
                   "Samples per rank and step that the plan may expect; 0: unknown")
      ->capture_default_str();
  command->add_option("--bag-length", o.bag_length, "Ids per bag that it may expect")
      ->capture_default_str();
  command->add_option("--balance", o.balance, "What is spread over the ranks: bytes or time")
      ->capture_default_str();
  command->add_option("--output", o.output, "File for the plan's JSON");
  command->add_flag("--json", o.json,
                    "One line of JSON: the plan, and the bytes of each table and rank");
  return [options] { return plan(*options); };
}

}  // namespace shardrec::cli
