// launch: starts processes of this machine as ranks of one group.
#include <iostream>

#include "command/commands.h"
#include "launch/engines.h"
#include "launch/processes.h"

namespace shardrec::cli {

Run add_launch(CLI::App& app) {
  auto options = std::make_shared<LaunchOptions>();
  CLI::App* command = app.add_subcommand(
      "launch",
      "Start processes of this machine as ranks: each finds in its environment what "
      "shardrec_comm_create_from_env reads. Signals are passed on; when one fails the others are "
      "ended, and the exit code is that of the first that failed.");
  command->add_option("--nproc", options->ranks, "Processes")
      ->required()
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("--ranks-per-node", options->ranks_per_node,
                   "Ranks that count as one node; default: all")
      ->check(CLI::Range(1, 1024));
  command->add_option("--engine", options->engine, kProcessEngineHelp)
      ->check(CLI::IsMember(process_engine_names()))
      ->capture_default_str();
  command->add_option("program", options->command, "Behind --: the program and its arguments")
      ->required();
  return [options] {
    const LaunchEnd end = launch(*options);
    if (!end.failure.empty()) std::cerr << "shardrec launch: " << end.failure << " first.\n";
    return end.code;
  };
}

}  // namespace shardrec::cli
