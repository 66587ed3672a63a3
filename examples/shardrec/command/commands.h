// The subcommands. Each adds itself to the command line and is run when it was chosen; run returns
// the exit code: 0 done, 1 failed (also: a recorded case is out of tolerance).
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

namespace shardrec::cli {

using Run = std::function<int()>;

Run add_train(CLI::App& app);
Run add_plan(CLI::App& app);
Run add_generate(CLI::App& app);
Run add_replay(CLI::App& app);
Run add_bench(CLI::App& app);
Run add_probe(CLI::App& app);
Run add_launch(CLI::App& app);
Run add_trace(CLI::App& app);
Run add_inspect(CLI::App& app);
Run add_serve_bench(CLI::App& app);

}  // namespace shardrec::cli
