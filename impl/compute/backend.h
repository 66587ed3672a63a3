// A back end: what touches ids, rows and gradients, as operations on whole batches (operations.h).
// Above it, a step decides on sizes, states and the order of things, and knows neither threads nor
// instruction sets, nor what a row holds.
//
// The operations of a back end take place in the order of the calls. Those of the CPU are over when
// the call returns.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "compute/operations.h"
#include "core/memory.h"
#include "core/threads.h"

namespace shardrec::compute {

class Backend {
 public:
  virtual ~Backend() = default;

  virtual void sum_bags(std::span<const BagSums> blocks) = 0;
  // output_bytes: of the whole output that the blocks are in.
  virtual void look_up_outputs(std::span<const BagOutputs> blocks, size_t output_bytes) = 0;

 protected:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
};

// The CPU's, with these kernels. work: memory of one operation at a time.
std::unique_ptr<Backend> make_cpu_backend(const Kernels& kernels, core::Threads& threads,
                                          core::Scratch& work);

}  // namespace shardrec::compute
