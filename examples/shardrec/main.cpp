// The `shardrec` command: train, plan, generate, replay, bench, probe, launch, trace, inspect and
// serve-bench, through the C++ layer (shardrec.hpp) of the C API of libshardrec.
#include <exception>
#include <iostream>
#include <new>
#include <shardrec/shardrec.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "command/commands.h"
#include "command/interrupt.h"
#include "command/usage.h"

namespace shardrec::cli {
namespace {

constexpr int kUsageExit = 2;

int run_command(int argc, char** argv) {
  CLI::App app("Sharded embedding tables and dense training for recommendation models.",
               "shardrec");
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "The options of all subcommands");
  app.set_version_flag("--version", version_text, "What library this is, and what it finds here");

  const std::vector<std::pair<const char*, Run>> runs{
      {"train", add_train(app)},       {"plan", add_plan(app)},
      {"generate", add_generate(app)}, {"replay", add_replay(app)},
      {"bench", add_bench(app)},       {"probe", add_probe(app)},
      {"launch", add_launch(app)},     {"trace", add_trace(app)},
      {"inspect", add_inspect(app)},   {"serve-bench", add_serve_bench(app)}};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0 && !names_no_subcommand(app)) return app.exit(error);
    std::cerr << usage_error(app, error);
    return kUsageExit;
  }
  for (const auto& [name, run] : runs) {
    if (app.got_subcommand(name)) return run();
  }
  return kUsageExit;
}

}  // namespace
}  // namespace shardrec::cli

int main(int argc, char** argv) {
  namespace cli = shardrec::cli;
  try {
    return cli::run_command(argc, argv);
  } catch (const shardrec::Error& error) {
    if (error.status() == SHARDREC_CANCELLED && cli::interrupted()) {
      std::cerr << "shardrec: stopped by an interrupt\n";
      return cli::kInterruptedExit;
    }
    std::cerr << "shardrec: " << error.what() << " (" << error.status_name() << ")\n";
  } catch (const std::bad_alloc&) {
    std::cerr << "shardrec: memory ran out\n";
  } catch (const std::system_error& error) {
    std::cerr << "shardrec: the system gave no room or no thread: " << error.code().message()
              << "\n";
  } catch (const std::exception& error) {
    std::cerr << "shardrec: " << error.what() << "\n";
  }
  return 1;
}
