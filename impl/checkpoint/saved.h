// The model, plan and layers that a checkpoint holds as text. Not collective.
#pragma once

#include <memory>
#include <string>

#include "checkpoint/load.h"
#include "dense/mlp.h"
#include "plan/together.h"

namespace shardrec::checkpoint {

// name: a collection, or layers, of the checkpoint. Throw NOT_FOUND (no such name; a release that
// saved none) and CORRUPT_DATA (text that is not as it was written).
plan::Model saved_model(const Opened& opened, const std::string& name);
plan::PlannedModel saved_plan(const Opened& opened, const std::string& name);
// With the parameters' initial values.
std::shared_ptr<dense::Mlp> saved_layers(const Opened& opened, const std::string& name,
                                         const dense::MlpOptions& options);

}  // namespace shardrec::checkpoint
