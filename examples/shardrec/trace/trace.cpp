// shardrec trace merge: the traces of a group's processes as one.
#include <iostream>

#include "command/commands.h"
#include "command/numbers.h"
#include "trace/trace_merge.h"

namespace shardrec::cli {
namespace {

struct MergeOptions {
  std::string output;
  std::vector<std::string> inputs;
};

int merge(const MergeOptions& options) {
  const Merged merged = merge_traces(options.output, options.inputs);
  if (merged.by_wall_clock) {
    std::cerr
        << "shardrec: these processes have never compared their clocks: their times are those "
           "of the machines' wall clocks, which may be far apart.\n";
  }
  std::cout << with_separators(merged.events) << " events of " << options.inputs.size()
            << " files in " << options.output;
  if (!merged.by_wall_clock) {
    std::cout << ", times within " << static_cast<int64_t>(merged.uncertainty_us + 1)
              << " us of rank 0's clock";
  }
  std::cout << "\n";
  return 0;
}

}  // namespace

Run add_trace(CLI::App& app) {
  auto options = std::make_shared<MergeOptions>();
  CLI::App* command = app.add_subcommand("trace", "Traces, for ui.perfetto.dev.");
  command->require_subcommand(1);
  CLI::App* to_merge = command->add_subcommand(
      "merge", "Make one trace of those that the processes of a group have written.");
  to_merge->add_option("output", options->output, "File to write")->required();
  to_merge->add_option("inputs", options->inputs, "Files of shardrec_trace_json, one per process")
      ->required();
  return [options] { return merge(*options); };
}

}  // namespace shardrec::cli
