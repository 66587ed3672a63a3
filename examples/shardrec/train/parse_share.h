// The processors that reading a log may take beside training.
#pragma once

#include "command/machine.h"
#include "train/train_options.h"

namespace shardrec::cli {

// Threads of this process that read and parse. The ranks take all processors that they may use where they train on
// the CPU (with --threads N each rank takes N), and one each where layers and tables are on devices; reading has the
// rest. All ranks count as ranks of this machine, because several nodes of --ranks-per-node may be on one: if the
// ranks are on several machines, --parse-threads can give more.
// processors: is called only if the answer depends on it, because the library looks for devices then.
int parse_threads(const TrainOptions& options, int (*processors)() = usable_processors);

}  // namespace shardrec::cli
