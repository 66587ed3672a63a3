// inspect: what a directory of checkpoints holds, whether it is whole, how two of them differ.
#include <iostream>
#include <nlohmann/json.hpp>

#include "command/commands.h"
#include "command/interrupt.h"
#include "command/long_work.h"
#include "command/numbers.h"
#include "command/text_table.h"
#include "inspect/checkpoint_diff.h"
#include "launch/ranks.h"

namespace shardrec::cli {
namespace {

using nlohmann::json;
using Align = TextTable::Align;

struct InspectOptions {
  std::string directory;
  int64_t step = -1;
  bool verify = false;
  std::string diff;
  bool json = false;
};

struct Report {
  json list;  // null: not a directory of checkpoints
  json contents;
  int64_t step = 0;
  std::optional<Comparison> comparison;
  int64_t other_step = 0;
};

json list_of(const std::string& directory) { return json::parse(Checkpoint::list_json(directory)); }

// What a delta is a change of. The list of a directory that is a checkpoint itself has that alone.
std::string change_text(const json& list, const json& contents, const json& entry) {
  if (!entry.contains("base")) return "";
  const std::string states = entry.at("states").get<bool>() ? "" : ", no states";
  if (entry.at("directory") == "") {
    return "delta of step " + with_separators(contents.at("base").at("step")) + states;
  }
  for (const json& other : list.at("checkpoints")) {
    if (other.at("commit") != entry.at("base")) continue;
    return "delta of step " + with_separators(other.at("step")) + states;
  }
  return "delta of a missing one" + states;
}

std::string checkpoint_table(const json& list, const json& contents) {
  TextTable table(
      {{"step"}, {"bytes"}, {"directory", Align::kLeft}, {"", Align::kLeft}, {"", Align::kLeft}});
  for (const json& entry : list.at("checkpoints")) {
    const bool latest = entry.at("step") == list.at("latest");
    table.add({with_separators(entry.at("step")), bytes_text(entry.at("bytes")),
               entry.at("directory"), change_text(list, contents, entry), latest ? "latest" : ""});
  }
  return table.text();
}

struct TableSize {
  int64_t boxes = 0;    // of the weights
  int64_t changed = 0;  // of a delta, rows of the table
  int64_t weights = 0;
  int64_t states = 0;
};

TableSize size_of(const json& contents, const std::string& collection, const std::string& table) {
  TableSize size;
  for (const json& box : contents.at("boxes")) {
    if (box.at("collection") != collection || box.at("table") != table) continue;
    const int64_t bytes = box.at("bytes");
    const bool weights = box.at("part") == "weights";
    size.boxes += weights ? 1 : 0;
    // Boxes of the first column have each row once.
    if (weights && box.at("col") == 0) size.changed += box.value("changed_rows", int64_t{0});
    (weights ? size.weights : size.states) += bytes;
  }
  return size;
}

void print_tables(const json& contents) {
  for (const json& collection : contents.at("collections")) {
    const std::string name = collection.at("name");
    std::cout << "\ntables" << (name.empty() ? "" : " of the collection \"" + name + "\"") << ", "
              << with_separators(collection.at("step")) << " updates\n";
    TextTable table({{"table", Align::kLeft},
                     {"rows"},
                     {"dim"},
                     {"dtype", Align::kLeft},
                     {"optimizer", Align::kLeft},
                     {"boxes"},
                     {"weights"},
                     {"states"},
                     {contents.contains("base") ? "changed rows" : ""}});
    for (const json& entry : collection.at("tables")) {
      const TableSize size = size_of(contents, name, entry.at("name"));
      table.add({entry.at("name"), with_separators(entry.at("rows")),
                 with_separators(entry.at("dim")), entry.at("dtype"), entry.at("optimizer"),
                 with_separators(size.boxes), bytes_text(size.weights), bytes_text(size.states),
                 contents.contains("base") ? with_separators(size.changed) : ""});
    }
    std::cout << table.text();
  }
}

void print_items(const json& contents, const char* key, const char* title) {
  if (contents.at(key).empty()) return;
  TextTable table({{title, Align::kLeft}, {"tensors"}, {"bytes"}});
  for (const json& item : contents.at(key)) {
    int64_t bytes = 0;
    for (const json& tensor : item.at("tensors")) bytes += tensor.at("bytes").get<int64_t>();
    table.add({item.at("name"), std::to_string(item.at("tensors").size()), bytes_text(bytes)});
  }
  std::cout << "\n" << table.text();
}

void print_host_tensors(const json& contents) {
  if (contents.at("tensors").empty()) return;
  TextTable table({{"tensor of the host", Align::kLeft},
                   {"rank"},
                   {"dtype", Align::kLeft},
                   {"shape", Align::kLeft},
                   {"bytes"}});
  for (const json& tensor : contents.at("tensors")) {
    table.add({tensor.at("name"), tensor.at("rank").dump(), tensor.at("dtype"),
               tensor.at("shape").dump(), bytes_text(tensor.at("bytes"))});
  }
  std::cout << "\n" << table.text();
}

void print_comparison(const InspectOptions& options, const Report& report) {
  const Comparison& comparison = *report.comparison;
  std::cout << "\nA: " << options.directory << ", step " << with_separators(report.step)
            << "; B: " << options.diff << ", step " << with_separators(report.other_step) << "\n";
  if (comparison.same()) {
    std::cout << "the same: " << with_separators(comparison.compared)
              << " parts of tables, tensors of layers and of the host\n";
    return;
  }
  TextTable table({{"", Align::kLeft},
                   {"name", Align::kLeft},
                   {"part", Align::kLeft},
                   {"", Align::kLeft},
                   {"largest difference"}});
  for (const Difference& difference : comparison.differences) {
    table.add({difference.what, difference.name, difference.part, difference.verdict,
               difference.largest ? scientific(*difference.largest, 3) : ""});
  }
  std::cout << table.text() << with_separators(std::ssize(comparison.differences))
            << " differences; " << with_separators(comparison.compared)
            << " parts and tensors are in both\n";
}

json json_of(const Comparison& comparison, const Report& report) {
  json differences = json::array();
  for (const Difference& difference : comparison.differences) {
    differences.push_back({{"what", difference.what},
                           {"name", difference.name},
                           {"part", difference.part},
                           {"verdict", difference.verdict},
                           {"largest", difference.largest ? json(*difference.largest) : json()}});
  }
  return {{"step", report.other_step},
          {"same", comparison.same()},
          {"compared", comparison.compared},
          {"differences", differences}};
}

void print(const InspectOptions& options, const Report& report) {
  if (options.json) {
    nlohmann::ordered_json line;
    line["version"] = 1;
    line["directory"] = options.directory;
    line["latest"] = report.list.at("latest");
    line["checkpoints"] = report.list.at("checkpoints");
    line["contents"] = report.contents;
    if (options.verify) line["verified"] = true;
    if (report.comparison) line["diff"] = json_of(*report.comparison, report);
    std::cout << line.dump() << "\n" << std::flush;
    return;
  }
  std::cout << checkpoint_table(report.list, report.contents) << "\n";
  std::cout << "step " << with_separators(report.step) << ", saved by "
            << report.contents.at("ranks")
            << (report.contents.at("ranks") == 1 ? " rank" : " ranks") << "\n";
  if (report.contents.contains("base")) {
    const json& base = report.contents.at("base");
    std::cout << "a delta of step " << with_separators(base.at("step")) << ", number "
              << base.at("deltas") << " behind a whole checkpoint"
              << (base.at("states").get<bool>() ? "" : "; it has no states of tables' optimizers")
              << "\n";
  }
  print_tables(report.contents);
  print_items(report.contents, "layers", "layers");
  print_items(report.contents, "parameters", "parameters");
  print_host_tensors(report.contents);
  if (options.verify) std::cout << "\nverified: every checksum is right\n";
  if (report.comparison) print_comparison(options, report);
  std::cout << std::flush;
}

int inspect(const InspectOptions& options) {
  handle_interrupts();
  Report report;
  report.list = list_of(options.directory);
  run_ranks({.ranks = 1}, [&](int, Comm& comm) {
    const OpenCheckpoint checkpoint = open_checkpoint(comm, options.directory, options.step);
    report.step = checkpoint.step;
    report.contents = contents_of(checkpoint);
    if (options.verify) {
      const LongWork work("verifying " + options.directory, true, LongWork::OnInterrupt::kCancel);
      checkpoint.handle.verify(work.control());
    }
    if (options.diff.empty()) return;
    const OpenCheckpoint other = open_checkpoint(comm, options.diff, -1);
    report.other_step = other.step;
    report.comparison = compare(checkpoint, other);
  });
  print(options, report);
  return 0;
}

}  // namespace

Run add_inspect(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command = app.add_subcommand(
      "inspect", "Show what a directory of checkpoints holds: tables, layers, sizes, steps.");
  command->add_option("directory", options->directory, "Of checkpoints, or one of them")
      ->required();
  command->add_option("--step", options->step, "The checkpoint to look at; default: the latest")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--verify", options->verify, "Read all of it and compare every checksum");
  command->add_option(
      "--diff", options->diff,
      "Another directory of checkpoints (its latest), or one of them: what differs, "
      "and by how much at most");
  command->add_flag("--json", options->json, "One line of JSON in place of the tables");
  return [options] { return inspect(*options); };
}

}  // namespace shardrec::cli
