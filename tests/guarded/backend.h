// The back end for tests (backend.cpp).
#pragma once

#include <memory>

#include "compute/backends/registry.h"

namespace shardrec::test {

std::unique_ptr<compute::Backend> guarded_backend(const compute::BackendOptions& options);

}  // namespace shardrec::test
