// The optimizers of parameters that are no tables: those of layers, and those whose gradients DDP
// exchanges. Keeps the states and counts the steps; values and gradients are the owner's memory.
//
// Formulas: compute/optimizer.h, with the kernels of the tables. LAMB takes one ratio per parameter:
// its norms are 16-lane sums in fp32 over each block of kBlockElements elements (extents.h), the
// blocks added up in float64 in ascending order. So the bits of a step depend neither on the number
// of threads nor on which parameters are stepped together.
//
// Not thread-safe, but step() of parameters that no other call has may run at the same time as
// other calls of step(), each with Threads of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compute/kernels.h"
#include "core/function_ref.h"
#include "core/memory.h"
#include "core/threads.h"
#include "dense/extents.h"
#include "plan/model/model.h"

namespace shardrec::dense {

// Names of the states of an optimizer, each of the parameter's size: SGD none, MOMENTUM_SGD
// "momentum", ADAGRAD "sum", ADAM and LAMB "mean", "square". Throws UNSUPPORTED for an optimizer
// that only tables have.
std::vector<std::string> state_names(shardrec_optimizer kind);

class ElementOptimizer {
 public:
  // Throws UNSUPPORTED as state_names().
  explicit ElementOptimizer(const plan::Optimizer& optimizer);

  // Makes room: the next `parameters` calls of add() with `elements` elements in all do not throw.
  // May move the states.
  void reserve(size_t parameters, int64_t elements);
  // Adds a parameter, which is stepped in place, with states of zero; returns its index. values and
  // gradients have one size and stay valid until rebind(). May move the states. Throws
  // OUT_OF_MEMORY and leaves all as it was.
  size_t add(std::span<float> values, std::span<const float> gradients);
  // The parameter has moved; the sizes stay.
  void rebind(size_t parameter, std::span<float> values, std::span<const float> gradients) noexcept;

  // The states are zero, and cost no memory until they are touched.
  void clear_states() noexcept;

  size_t parameters() const noexcept { return memory_.size(); }
  int states() const noexcept { return static_cast<int>(states_.size()); }
  // state in [0, states()). Those of all parameters stand one after another, in the order of
  // adding. Valid until the next add().
  std::span<float> state(size_t parameter, int state) const noexcept;
  std::span<float> state(int state) const noexcept;  // of all parameters

  const plan::Optimizer& optimizer() const noexcept { return optimizer_; }
  // From the next begin_step() on.
  void set_learning_rate(double rate) noexcept {
    optimizer_.learning_rate = rate;
    learning_rate_was_set_ = true;
  }
  bool learning_rate_was_set() const noexcept { return learning_rate_was_set_; }
  // As given to the constructor, whatever was set since.
  plan::Optimizer initial_optimizer() const noexcept;

  // Steps that were begun.
  int64_t steps() const noexcept { return steps_; }
  void set_steps(int64_t steps) noexcept { steps_ = steps; }

  // Counts a step: settings and bias corrections of the calls of step() that follow.
  void begin_step() noexcept;
  // Of the step that was begun, without memory: for parameters that are stepped elsewhere.
  compute::ElementUpdate settings() const noexcept;
  // Steps parameters [first, first + count), each once after begin_step(). Reads their gradients and
  // leaves them as they are. Allocates nothing.
  void step(size_t first, size_t count, core::Threads& threads);
  // The same of all parameters, each of which is a part of one whose other parts other ranks step: add_up
  // makes sums over the parts, two a parameter, those of the whole. It is called for LAMB only.
  void step_parts(core::Threads& threads, core::FunctionRef<void(std::span<double>)> add_up);

 private:
  struct Memory {
    float* values = nullptr;
    const float* gradients = nullptr;
    float sums[2] = {};  // LAMB's, of this step
  };
  compute::ElementUpdate job_of(size_t parameter) const noexcept;
  void take_sums(size_t first, size_t count, core::Threads& threads);
  void take_block_sums(size_t first, size_t count, core::Threads& threads);
  // The two sums of a parameter.
  void add_blocks(size_t parameter, std::span<double, 2> totals) const noexcept;
  void update(size_t first, size_t count, core::Threads& threads);

  plan::Optimizer optimizer_;
  double initial_learning_rate_;
  bool learning_rate_was_set_ = false;
  int64_t steps_ = 0;
  compute::OptimizerStep step_;
  Extents extents_;
  std::vector<Memory> memory_;
  int64_t capacity_ = 0;  // elements of each state
  std::vector<core::Pages> states_;
  std::vector<float> block_sums_;  // LAMB: two a block
  std::vector<double> part_sums_;  // LAMB, of step_parts(): two a parameter
};

}  // namespace shardrec::dense
