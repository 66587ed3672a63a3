// bench sync: how long replicas of tables take to be averaged, and what moves.
#pragma once

#include "command/commands.h"

namespace shardrec::cli {

// Adds `sync` to the command `bench`; run it when it was chosen.
struct SyncBench {
  CLI::App* command;
  Run run;
};
SyncBench add_sync_bench(CLI::App& bench);

}  // namespace shardrec::cli
