// The back end for tests (backend.cpp).
#pragma once

#include <memory>

#include "compute/backend.h"

namespace shardrec::test {

std::unique_ptr<compute::Backend> guarded_backend(core::Threads& threads, bool peers_in_process);

}  // namespace shardrec::test
