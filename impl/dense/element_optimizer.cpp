#include "dense/element_optimizer.h"

#include <algorithm>
#include <utility>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/kernels.h"
#include "compute/optimizer.h"
#include "core/error.h"
#include "plan/model/optimizer_step.h"

namespace shardrec::dense {
namespace {

float* floats(const core::Pages& pages) noexcept {
  return static_cast<float*>(const_cast<void*>(static_cast<const void*>(pages.data())));
}

}  // namespace

std::vector<std::string> state_names(shardrec_optimizer kind) {
  const compute::OptimizerFacts* const facts = compute::find_facts(kind);
  if (facts == nullptr || !facts->of_layers) {
    core::fail(SHARDREC_UNSUPPORTED,
               core::sentence("layers and DDP parameters have no optimizer number ",
                              static_cast<int>(kind),
                              "; SGD, MOMENTUM_SGD, ADAGRAD, ADAM and LAMB are accepted"),
               {.value = static_cast<int>(kind)});
  }
  std::vector<std::string> names;
  for (size_t s = 0; s < facts->state_count(); ++s) names.emplace_back(facts->states[s].layer_name);
  return names;
}

ElementOptimizer::ElementOptimizer(const plan::Optimizer& optimizer)
    : optimizer_(optimizer),
      initial_learning_rate_(optimizer.learning_rate),
      step_(plan::optimizer_step(optimizer, 1)),
      states_(state_names(optimizer.kind).size()) {}

void ElementOptimizer::reserve(size_t parameters, int64_t elements) {
  extents_.reserve(parameters);
  reserve_more(memory_, parameters);
  if (optimizer_.kind == SHARDREC_OPTIMIZER_LAMB) {
    // Each parameter ends with one block that may be partial.
    reserve_more(block_sums_, 2 * (static_cast<size_t>(elements / kBlockElements) + parameters));
  }
  const int64_t wanted = extents_.elements() + elements;
  if (wanted <= capacity_ || states_.empty()) return;
  core::require_room(states_.size() * static_cast<uint64_t>(wanted) * sizeof(float),
                     "the state of an optimizer");
  // Pages that nobody has touched cost nothing.
  const int64_t capacity = std::max(wanted, 2 * capacity_);
  std::vector<core::Pages> grown;
  for (const core::Pages& old : states_) {
    grown.emplace_back(static_cast<size_t>(capacity) * sizeof(float));
    std::copy_n(floats(old), extents_.elements(), floats(grown.back()));
  }
  states_ = std::move(grown);
  capacity_ = capacity;
}

size_t ElementOptimizer::add(std::span<float> values, std::span<const float> gradients) {
  const auto size = static_cast<int64_t>(values.size());
  reserve(1, size);
  const size_t index = extents_.add(size);
  memory_.push_back({.values = values.data(), .gradients = gradients.data()});
  if (optimizer_.kind == SHARDREC_OPTIMIZER_LAMB) {
    block_sums_.resize(2 * static_cast<size_t>(extents_.blocks()));
  }
  return index;
}

void ElementOptimizer::rebind(size_t parameter, std::span<float> values,
                              std::span<const float> gradients) noexcept {
  memory_[parameter].values = values.data();
  memory_[parameter].gradients = gradients.data();
}

void ElementOptimizer::clear_states() noexcept {
  for (core::Pages& state : states_) state.clear();
}

std::span<float> ElementOptimizer::state(int state) const noexcept {
  return {floats(states_[static_cast<size_t>(state)]), static_cast<size_t>(extents_.elements())};
}

std::span<float> ElementOptimizer::state(size_t parameter, int state) const noexcept {
  const Extent& extent = extents_[parameter];
  return this->state(state).subspan(static_cast<size_t>(extent.begin),
                                    static_cast<size_t>(extent.size));
}

plan::Optimizer ElementOptimizer::initial_optimizer() const noexcept {
  plan::Optimizer optimizer = optimizer_;
  optimizer.learning_rate = initial_learning_rate_;
  return optimizer;
}

void ElementOptimizer::begin_step() noexcept {
  ++steps_;
  step_ = plan::optimizer_step(optimizer_, steps_);
}

compute::ElementUpdate ElementOptimizer::settings() const noexcept {
  compute::ElementUpdate settings;
  settings.max_gradient = static_cast<float>(optimizer_.max_gradient);
  settings.step = step_;
  return settings;
}

compute::ElementUpdate ElementOptimizer::job_of(size_t parameter) const noexcept {
  const Memory& memory = memory_[parameter];
  compute::ElementUpdate job = settings();
  job.weights = memory.values;
  job.gradients = memory.gradients;
  for (size_t s = 0; s < states_.size(); ++s) {
    job.matrices[s] = floats(states_[s]) + extents_[parameter].begin;
  }
  std::copy_n(memory.sums, std::size(memory.sums), job.sums);
  return job;
}

void ElementOptimizer::step(size_t first, size_t count, core::Threads& threads) {
  if (count == 0) return;
  if (step_.kind == compute::OptimizerKind::kLamb) take_sums(first, count, threads);
  update(first, count, threads);
}

void ElementOptimizer::step_parts(core::Threads& threads,
                                  core::FunctionRef<void(std::span<double>)> add_up) {
  const size_t count = memory_.size();
  if (count == 0) return;
  if (step_.kind == compute::OptimizerKind::kLamb) {
    take_block_sums(0, count, threads);
    part_sums_.resize(2 * count);
    for (size_t at = 0; at < count; ++at) {
      add_blocks(at, std::span<double, 2>(part_sums_.data() + 2 * at, 2));
    }
    add_up(part_sums_);
    for (size_t at = 0; at < count; ++at) {
      memory_[at].sums[0] = static_cast<float>(part_sums_[2 * at]);
      memory_[at].sums[1] = static_cast<float>(part_sums_[2 * at + 1]);
    }
  }
  update(0, count, threads);
}

void ElementOptimizer::update(size_t first, size_t count, core::Threads& threads) {
  const compute::Kernels& kernels = compute::cpu_kernels();
  const Extent& last = extents_[first + count - 1];
  const int64_t begin = extents_[first].begin;
  threads.parallel_for(
      last.begin + last.size - begin, kBlockElements, [&](int64_t from, int64_t to) {
        extents_.for_elements(begin + from, begin + to, [&](size_t at, int64_t lo, int64_t hi) {
          kernels.element_update(job_of(at), lo, hi);
        });
      });
}

// LAMB's first pass: moves the means, and takes the sums of each block.
void ElementOptimizer::take_block_sums(size_t first, size_t count, core::Threads& threads) {
  const compute::Kernels& kernels = compute::cpu_kernels();
  const Extent& last = extents_[first + count - 1];
  const int64_t begin = extents_[first].begin;
  threads.parallel_for(
      last.begin + last.size - begin, kBlockElements, [&](int64_t from, int64_t to) {
        extents_.for_blocks(
            begin + from, begin + to, [&](size_t at, int64_t block, int64_t lo, int64_t hi) {
              kernels.element_sums(job_of(at), lo, hi, block_sums_.data() + 2 * block);
            });
      });
}

void ElementOptimizer::add_blocks(size_t parameter, std::span<double, 2> totals) const noexcept {
  const Extent& extent = extents_[parameter];
  const float* sums = block_sums_.data() + 2 * extent.first_block;
  totals[0] = totals[1] = 0;
  for (int64_t block = 0; block < Extents::blocks_of(extent.size); ++block, sums += 2) {
    totals[0] += static_cast<double>(sums[0]);
    totals[1] += static_cast<double>(sums[1]);
  }
}

void ElementOptimizer::take_sums(size_t first, size_t count, core::Threads& threads) {
  take_block_sums(first, count, threads);
  for (size_t at = first; at < first + count; ++at) {
    double totals[2];
    add_blocks(at, totals);
    memory_[at].sums[0] = static_cast<float>(totals[0]);
    memory_[at].sums[1] = static_cast<float>(totals[1]);
  }
}

}  // namespace shardrec::dense
