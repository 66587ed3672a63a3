// Parameters of a stack of layers, their gradients and optimizer states, each one contiguous array:
// one optimizer loop, one all-reduce. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/memory.h"
#include "core/threads.h"
#include "dense/element_optimizer.h"
#include "plan/model/model.h"

namespace shardrec::dense {

// A parameter's place in the arrays.
struct ParameterInfo {
  std::string name;  // "layer.0.weight"
  std::vector<int64_t> shape;
  int64_t offset = 0;
  int64_t size = 0;
};

class Parameters {
 public:
  // Throws UNSUPPORTED for an optimizer that layers do not have.
  explicit Parameters(const plan::Optimizer& optimizer);

  // Appends parameters, zero; moves the arrays. Throws OUT_OF_MEMORY and leaves them as they were.
  void append(std::vector<ParameterInfo> added);

  const std::vector<ParameterInfo>& infos() const noexcept { return infos_; }
  int64_t size() const noexcept { return size_; }
  float* values(int64_t offset = 0) const noexcept;
  float* gradients(int64_t offset = 0) const noexcept;
  // state in [0, state_names().size())
  float* state(int state, int64_t offset = 0) const noexcept;

  const plan::Optimizer& optimizer() const noexcept { return optimizer_.optimizer(); }
  void set_learning_rate(double rate) noexcept { optimizer_.set_learning_rate(rate); }
  bool learning_rate_was_set() const noexcept { return optimizer_.learning_rate_was_set(); }
  // The optimizer that the stack was made with, whatever was set since.
  plan::Optimizer initial_optimizer() const noexcept { return optimizer_.initial_optimizer(); }
  int64_t steps() const noexcept { return optimizer_.steps(); }
  void set_steps(int64_t steps) noexcept { optimizer_.set_steps(steps); }

  // Values, gradients and states are zero, and cost no memory until they are touched.
  void clear() noexcept;

  // One optimizer step on all parameters. The same bits for any number of threads.
  void step(core::Threads& threads);
  // Counts a step that is taken elsewhere; returns its settings.
  compute::ElementUpdate begin_step() noexcept;

 private:
  ElementOptimizer optimizer_;  // keeps the states
  std::vector<ParameterInfo> infos_;
  int64_t size_ = 0;
  core::Pages values_;
  core::Pages gradients_;
};

// Normal numbers of the given standard deviation into out, a function of (seed, layer, which) and
// the position only: Philox4x32-10 with key seed and counter (position / 4 low, high, layer,
// which), two Box-Muller pairs a block.
void fill_normal(std::span<float> out, double deviation, uint64_t seed, uint32_t layer,
                 uint32_t which, core::Threads& threads);

}  // namespace shardrec::dense
