// The back end that the stages of a step compute with, where a test runs them without a collection.
#pragma once

#include <memory>

#include "comm/bodies/carrier.h"
#include "compute/backend.h"
#include "compute/cpu/backend.h"
#include "compute/cpu/kernels/dispatch.h"
#include "embedding/exchange/step_scratch.h"

namespace shardrec::embedding {

class StepTools {
 public:
  explicit StepTools(int threads)
      : threads_(threads), backend_(compute::make_cpu_backend(compute::cpu_kernels(), threads_)) {}

  core::Threads& threads() { return threads_; }
  compute::Backend& backend() { return *backend_; }
  comm::BodyCarrier& bodies() { return *bodies_; }
  StepScratch& scratch() { return scratch_; }

 private:
  core::Threads threads_;
  std::unique_ptr<compute::Backend> backend_;
  std::unique_ptr<comm::BodyCarrier> bodies_ = comm::make_carrier(*backend_);
  StepScratch scratch_;
};

}  // namespace shardrec::embedding
