// shardrec: train, generate, replay, bench, probe, launch and trace, through the C API of
// libshardrec.
#include <exception>
#include <iostream>
#include <utility>
#include <vector>

#include "api.h"
#include "commands.h"

int main(int argc, char** argv) {
  constexpr int kUsageExit = 2;
  CLI::App app("Sharded embedding tables and dense training for recommendation models.",
               "shardrec");
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "The options of all subcommands");

  namespace cli = shardrec::cli;
  std::vector<cli::Run> runs{cli::add_train(app), cli::add_generate(app), cli::add_replay(app),
                             cli::add_bench(app), cli::add_probe(app),    cli::add_launch(app),
                             cli::add_trace(app)};
  const std::vector<const char*> names{"train", "generate", "replay", "bench",
                                       "probe", "launch",   "trace"};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsageExit;
  }
  try {
    for (size_t i = 0; i < runs.size(); ++i) {
      if (app.got_subcommand(names[i])) return runs[i]();
    }
  } catch (const cli::ApiError& error) {
    std::cerr << "shardrec: " << error.what() << " (" << shardrec_status_name(error.status())
              << ")\n";
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "shardrec: " << error.what() << "\n";
    return 1;
  }
  return kUsageExit;
}
