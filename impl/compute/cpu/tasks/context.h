// What the CPU's operations compute with.
#pragma once

#include <memory>

#include "compute/buffer.h"
#include "compute/kernels.h"
#include "core/memory.h"
#include "core/threads.h"

namespace shardrec::compute::cpu {

struct Context {
  const Kernels& kernels;
  core::Threads& threads;
  core::Scratch& work;             // of one operation at a time
  std::shared_ptr<Memory> memory;  // of what outlives an operation
};

}  // namespace shardrec::compute::cpu
