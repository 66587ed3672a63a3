// Training a model on a click log, as the options say: the whole of `shardrec train`.
#pragma once

#include "train/train_options.h"

namespace shardrec::cli {

// Returns the exit code. Throws UserError, and Error where the library refuses something.
int train(TrainOptions options);

}  // namespace shardrec::cli
