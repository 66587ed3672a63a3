// bench dense: layers trained data-parallel over ranks, without tables.
#pragma once

#include "command/commands.h"

namespace shardrec::cli {

// Adds `dense` to the command `bench`; run it when it was chosen.
struct DenseBench {
  CLI::App* command;
  Run run;
};
DenseBench add_dense_bench(CLI::App& bench);

}  // namespace shardrec::cli
