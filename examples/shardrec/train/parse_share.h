// The processors that reading a log may take beside training.
#pragma once

#include "command/machine.h"
#include "train/train_options.h"

namespace shardrec::cli {

// Threads of this process that read and parse. The ranks take all processors that they may use where they train on
// the CPU (--threads: so many each), and one each where layers and tables are on devices; reading has the rest.
// processors: is asked only where that is needed, because the library looks for devices then.
int parse_threads(const TrainOptions& options, int (*processors)() = usable_processors);

}  // namespace shardrec::cli
