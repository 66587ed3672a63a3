// What a step computes with, on whichever stage it is.
#pragma once

#include "compute/backend.h"
#include "compute/kernels.h"
#include "core/memory.h"
#include "core/threads.h"

namespace shardrec::embedding {

struct StepContext {
  compute::Backend& backend;
  const compute::Kernels& kernels;
  core::Threads& threads;
  core::Scratch& work;  // of one stage at a time
};

}  // namespace shardrec::embedding
