// `shardrec plan`: which rows and columns of which table would live on which rank, and what they
// take of its memory. Plans without ranks: from a model's file, and a topology's or its numbers.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <shardrec/shardrec.hpp>
#include <string>
#include <vector>

#include "command/commands.h"
#include "command/numbers.h"
#include "command/text_table.h"
#include "command/user_error.h"
#include "plan/picture.h"
#include "plan/planned.h"

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
  std::string picture;
  bool json = false;
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
auto read_json(const std::string& path, const Make& make) {
  const std::string text = read_text(path);
  if (text.find('\0') != std::string::npos) {
    throw UserError(path + " holds a NUL; JSON is text.");
  }
  try {
    return make(text);
  } catch (const Error& error) {
    throw Error(error, path + ": " + error.what());
  }
}

Topology topology_of(const PlanOptions& options) {
  if (!options.topology.empty()) return read_json(options.topology, Topology::from_json);
  return Topology(options.ranks == 0 ? 1 : options.ranks, options.ranks_per_node);
}

Plan make_plan(const PlanOptions& options, const Model& model) {
  shardrec::PlanOptions planner;
  planner.sharding(options.sharding)
      .replication(options.replication)
      .batch_size(options.batch_size)
      .bag_length(options.bag_length)
      .balance(options.balance);
  return Plan(model, topology_of(options), planner);
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
  for (const PlannedTable& table : planned.tables) {
    for (const PlannedBox& box : table.boxes) {
      const Plan::Box& place = box.place;
      boxes.add({table.name, table.replicated ? "each" : std::to_string(place.rank),
                 range_text(place.row, place.rows), range_text(place.col, place.cols),
                 size_text(box.bytes.weights), size_text(box.bytes.states),
                 size_text(box.bytes.total())});
    }
  }
  std::cout << boxes.text() << "\n" << plan.to_text();
}

void print_json(const nlohmann::json& planned) {
  nlohmann::json out = planned;
  out["version"] = 1;
  std::cout << out.dump() << "\n";
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw UserError(path + " cannot be written.");
}

int plan(const PlanOptions& options) {
  const Model model = read_json(options.model, Model::from_json);
  if (model.info().tables == 0) throw UserError(options.model + " has no tables to plan for.");
  const Plan made = make_plan(options, model);
  const std::string json = made.to_json();
  if (!options.output.empty()) write_text(options.output, json + "\n");
  const Planned planned = read_plan(made, json);
  if (!options.picture.empty() || options.json) {
    const nlohmann::json document = planned_json(planned);
    if (!options.picture.empty()) write_text(options.picture, draw_plan(picture_of(document)));
    if (options.json) {
      print_json(document);
      return 0;
    }
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
  command->add_option("--picture", o.picture,
                      "File for the plan as a picture (SVG): tables, their boxes, bytes of ranks");
  command->add_flag("--json", o.json,
                    "One line of JSON: the plan, and the bytes of each table and rank");
  return [options] { return plan(*options); };
}

}  // namespace shardrec::cli
