// What a run of `train` was asked to do, as its checkpoints remember it, and how far it has come.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/samples.h"
#include "train/train_options.h"

namespace shardrec::cli {

// Behind a step. A run that starts here makes the steps that the other would have made next.
struct TrainPosition {
  int64_t epoch = 0;    // the one under way, from 0
  int64_t batches = 0;  // of it, trained
  int64_t steps = 0;    // of all epochs
  int64_t samples = 0;
};

// JSON. schema: of the data; the tables' sizes are remembered with it.
std::string settings_json(const TrainOptions& options, const Schema& schema);

enum class TakeSettings {
  kModel,  // to start from its weights: what tables and layers look like
  kOthers,  // to start from some of its weights: the same, but options that are given may be others, and
            // sizes of tables are not those of the checkpoint
  kRun  // to go on with it: also the order of the data, and what is left at its defaults
};
// Options that were not given become those of a checkpoint. UserError, naming both values, where one
// was given that does not go with it; CORRUPT_DATA's sentence for text that is no settings.
void take_settings(const std::string& json, const std::string& directory, TakeSettings what,
                   TrainOptions& options);

}  // namespace shardrec::cli
