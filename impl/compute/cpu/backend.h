// The CPU's back end: threads, tasks, and one set of kernels.
#pragma once

#include <memory>

#include "compute/backend.h"
#include "compute/kernels.h"
#include "core/threads.h"

namespace shardrec::compute {

// memory: of what its operations leave for others; host_memory: of messages. kernels and threads outlive it.
std::unique_ptr<Backend> make_cpu_backend(const Kernels& kernels, core::Threads& threads,
                                          std::shared_ptr<Memory> memory = cpu_memory(),
                                          std::shared_ptr<Memory> host_memory = cpu_memory());

}  // namespace shardrec::compute
