// A back end with what it works with.
#pragma once

#include <memory>

#include "compute/backend.h"
#include "compute/cpu/backend.h"
#include "compute/cpu/kernels/dispatch.h"

namespace shardrec::compute {

struct BackendTools {
  explicit BackendTools(int count = 2) : threads(count) {}

  core::Threads threads;
  std::unique_ptr<Backend> backend = make_cpu_backend(cpu_kernels(), threads);
};

}  // namespace shardrec::compute
