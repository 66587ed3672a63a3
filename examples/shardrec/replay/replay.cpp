// replay: recorded training steps are run again, and what comes out is compared with what was recorded.
#include <algorithm>
#include <array>
#include <iostream>
#include <nlohmann/json.hpp>

#include "command/commands.h"
#include "command/numbers.h"
#include "command/text_table.h"
#include "command/user_error.h"
#include "launch/devices.h"
#include "launch/engines.h"
#include "launch/processes.h"
#include "launch/ranks.h"
#include "replay/case_runner.h"

namespace shardrec::cli {
namespace {

using Json = nlohmann::json;

const char* outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed:
      return "passed";
    case Outcome::kFailed:
      return "FAILED";
    case Outcome::kUnsupported:
      return "unsupported";
    case Outcome::kNotComparable:
      return "not comparable";
  }
  return "";
}

std::string error_text(const LargestError& error) {
  return error.compared == 0 ? "-" : scientific(error.absolute, 1);
}

void add_row(TextTable& table, const RecordedCase& recorded, const CaseResult& result) {
  std::string status = outcome_name(result.outcome);
  if (!result.reason.empty()) status += " (" + result.reason + ")";
  if (result.out.compared + result.weights.compared == 0) {
    table.add({recorded.name, std::to_string(result.ranks), "-", "-", "-", "-", status});
    return;
  }
  const double worst =
      std::max({result.out.of_tolerance, result.weights.of_tolerance, result.state.of_tolerance});
  table.add({recorded.name, std::to_string(result.ranks), error_text(result.out),
             error_text(result.weights), error_text(result.state), fixed(worst, 3), status});
}

Json json_of(const LargestError& error) {
  return {error.compared, error.absolute, error.of_tolerance};
}
LargestError error_of(const Json& json) {
  return {.compared = json.at(0), .absolute = json.at(1), .of_tolerance = json.at(2)};
}

// A case that this process, a rank of it, has run: for the process that started the ranks.
int report_to_starter(const RecordedCase& recorded, const CaseResult& result, int rank) {
  if (rank == 0) {
    const Json line = {{"case", recorded.name},
                       {"outcome", static_cast<int>(result.outcome)},
                       {"reason", result.reason},
                       {"out", json_of(result.out)},
                       {"weights", json_of(result.weights)},
                       {"state", json_of(result.state)}};
    std::cout << line.dump() << "\n" << std::flush;
  }
  return 0;
}

// Runs a case in processes, a rank each.
CaseResult run_in_processes(const RecordedCase& recorded, const ReplayOptions& options) {
  CaseResult result;
  result.ranks = ranks_of(recorded, options);
  LaunchOptions ranks{.ranks = result.ranks,
                      .ranks_per_node = std::min(result.ranks, recorded.local_world_size),
                      .engine = options.engine,
                      .capture = true};
  ranks.command = {own_command().front(),
                   "replay",
                   options.path,
                   "--case",
                   recorded.name,
                   "--engine",
                   options.engine,
                   "--device",
                   options.device,
                   "--ranks",
                   std::to_string(result.ranks)};
  if (!options.sharding.empty())
    ranks.command.insert(ranks.command.end(), {"--sharding", options.sharding});
  const LaunchEnd end = launch(ranks);
  const Json line = Json::parse(end.output, nullptr, false);
  if (!end.failure.empty() || line.is_discarded()) {
    result.outcome = Outcome::kFailed;
    result.reason = end.failure.empty() ? "rank 0 said nothing" : end.failure;
    return result;
  }
  result.outcome = static_cast<Outcome>(line.at("outcome").get<int>());
  result.reason = line.at("reason");
  result.out = error_of(line.at("out"));
  result.weights = error_of(line.at("weights"));
  result.state = error_of(line.at("state"));
  return result;
}

int replay(ReplayOptions options) {
  const std::vector<RecordedCase> cases = read_cases(options.path);
  const Safetensors arrays(case_arrays_path(options.path));
  const bool starts_processes = starts_ranks({.engine = options.engine});
  options.tables_on = TablesOn(options.device);
  TextTable table({{"case", TextTable::Align::kLeft},
                   {"ranks"},
                   {"out"},
                   {"weights"},
                   {"state"},
                   {"of tolerance"},
                   {"status", TextTable::Align::kLeft}});
  std::array<int, 4> counts{};
  for (const RecordedCase& recorded : cases) {
    if (!options.case_name.empty() && recorded.name != options.case_name) continue;
    const CaseResult result = starts_processes ? run_in_processes(recorded, options)
                                               : run_case(recorded, arrays, options);
    if (in_processes(options.engine) && !starts_processes) {
      return report_to_starter(recorded, result, own_rank(options.engine));
    }
    ++counts[static_cast<size_t>(result.outcome)];
    add_row(table, recorded, result);
  }
  const int ran = counts[0] + counts[1] + counts[2] + counts[3];
  if (ran == 0) throw UserError(options.path + " has no case " + options.case_name + ".");
  const auto count = [&](Outcome outcome) { return counts[static_cast<size_t>(outcome)]; };
  std::cout << "Largest errors, |x - expected|; \"of tolerance\" is the largest share of what the "
               "case allows.\n\n"
            << table.text() << "\n"
            << count(Outcome::kPassed) << " passed, " << count(Outcome::kFailed) << " failed, "
            << count(Outcome::kUnsupported) << " unsupported, " << count(Outcome::kNotComparable)
            << " not comparable of " << ran << " cases\n"
            << std::flush;
  return count(Outcome::kFailed) > 0 ? 1 : 0;
}

}  // namespace

Run add_replay(CLI::App& app) {
  auto options = std::make_shared<ReplayOptions>();
  CLI::App* command = app.add_subcommand(
      "replay",
      "Run recorded training steps and compare: exit code 1 when a case is out of tolerance.");
  command->add_option("file", options->path, "NAME.json, with NAME.safetensors beside it")
      ->required();
  command->add_option("--case", options->case_name, "Only this case");
  command
      ->add_option(
          "--ranks", options->ranks,
          "Ranks; default: as recorded. The recorded batches are concatenated and split evenly")
      ->check(CLI::Range(1, 1024));
  command->add_option("--sharding", options->sharding,
                      "One kind for all tables; default: as recorded");
  command->add_option("--engine", options->engine, kEngineHelp)
      ->check(CLI::IsMember(engine_names()))
      ->capture_default_str();
  add_device_option(command, options->device, kTablesOnHelp);
  return [options] { return replay(*options); };
}

}  // namespace shardrec::cli
