// The model, plan and layers that a checkpoint holds as text. Not collective.
#pragma once

#include <memory>
#include <string>

#include "checkpoint/read/load.h"
#include "dense/layers/mlp.h"
#include "plan/plan.h"

namespace shardrec::checkpoint {

// name: that of a collection, or of layers, in the checkpoint. All throw NOT_FOUND (no such name,
// or a checkpoint of a release that saved no such text) and CORRUPT_DATA (the text was not written
// so).
plan::Model saved_model(const Opened& opened, const std::string& name);
plan::PlannedModel saved_plan(const Opened& opened, const std::string& name);
// A new stack, whose parameters have their initial values.
std::shared_ptr<dense::Mlp> saved_layers(const Opened& opened, const std::string& name,
                                         const dense::MlpOptions& options);

}  // namespace shardrec::checkpoint
