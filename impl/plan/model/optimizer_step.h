// Turns an optimizer as the model describes it into what the kernels compute with.
#pragma once

#include <cstdint>

#include "compute/optimizer.h"
#include "plan/model/model.h"

namespace shardrec::plan {

compute::OptimizerKind kind_of(shardrec_optimizer optimizer);

// Step `number`, from 1, with the optimizer's own learning rate. Each setting is rounded once.
compute::OptimizerStep optimizer_step(const Optimizer& optimizer, int64_t number);

}  // namespace shardrec::plan
