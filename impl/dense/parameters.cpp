#include "dense/parameters.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "compute/kernels.h"
#include "compute/math/scalar.h"
#include "core/error.h"
#include "plan/optimizer_step.h"

namespace shardrec::dense {
namespace {

constexpr int64_t kUpdateGrain = 16384;

float* floats(const core::Pages& pages) noexcept {
  return static_cast<float*>(const_cast<void*>(static_cast<const void*>(pages.data())));
}

}  // namespace

std::vector<std::string> state_names(shardrec_optimizer kind) {
  switch (kind) {
    case SHARDREC_OPTIMIZER_SGD:
      return {};
    case SHARDREC_OPTIMIZER_ADAGRAD:
      return {"sum"};
    case SHARDREC_OPTIMIZER_ADAM:
      return {"mean", "square"};
    default:
      core::fail(SHARDREC_UNSUPPORTED,
                 core::sentence("layers have no optimizer number ", static_cast<int>(kind),
                                "; SGD, ADAGRAD and ADAM are accepted"),
                 {.value = static_cast<int>(kind)});
  }
}

Parameters::Parameters(const plan::Optimizer& optimizer)
    : optimizer_(optimizer),
      initial_learning_rate_(optimizer.learning_rate),
      arrays_(2 + state_names(optimizer.kind).size()) {}

void Parameters::append(std::vector<ParameterInfo> added) {
  int64_t size = size_;
  for (ParameterInfo& info : added) {
    info.offset = size;
    size += info.size;
  }
  core::require_room(arrays_.size() * static_cast<uint64_t>(size) * sizeof(float),
                     "a stack with parameters, gradients and optimizer state");
  std::vector<core::Pages> arrays;
  for (const core::Pages& old : arrays_) {
    arrays.emplace_back(static_cast<size_t>(size) * sizeof(float));
    std::copy_n(floats(old), size_, floats(arrays.back()));
  }
  infos_.reserve(infos_.size() + added.size());
  std::move(added.begin(), added.end(), std::back_inserter(infos_));
  arrays_ = std::move(arrays);
  size_ = size;
}

float* Parameters::values(int64_t offset) const noexcept { return floats(arrays_[0]) + offset; }

float* Parameters::gradients(int64_t offset) const noexcept { return floats(arrays_[1]) + offset; }

float* Parameters::state(int state, int64_t offset) const noexcept {
  return floats(arrays_[static_cast<size_t>(state) + 2]) + offset;
}

void Parameters::step(core::Threads& threads) {
  ++steps_;
  compute::ElementUpdate update;
  update.weights = values();
  update.gradients = gradients();
  update.max_gradient = static_cast<float>(optimizer_.max_gradient);
  for (size_t k = 2; k < arrays_.size(); ++k) update.matrices[k - 2] = floats(arrays_[k]);
  update.step = plan::optimizer_step(optimizer_, steps_);
  const compute::Kernels& kernels = compute::cpu_kernels();
  threads.parallel_for(size_, kUpdateGrain, [&](int64_t begin, int64_t end) {
    kernels.element_update(update, begin, end);
  });
}

void fill_normal(std::span<float> out, double deviation, uint64_t seed, uint32_t layer,
                 uint32_t which, core::Threads& threads) {
  const compute::math::PhiloxKey key = compute::math::philox_key(seed);
  const auto count = static_cast<int64_t>(out.size());
  threads.parallel_for((count + 3) / 4, 4096, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const compute::math::PhiloxCounter bits = compute::math::philox(
          {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), layer, which}, key);
      for (size_t pair = 0; pair < 2; ++pair) {
        constexpr double kScale = 0x1p-32;
        const double u = (bits[2 * pair] + 0.5) * kScale;
        const double angle = 2 * std::numbers::pi * (bits[2 * pair + 1] + 0.5) * kScale;
        const double radius = deviation * std::sqrt(-2 * std::log(u));
        const size_t at = static_cast<size_t>(block) * 4 + 2 * pair;
        if (at < out.size()) out[at] = static_cast<float>(radius * std::cos(angle));
        if (at + 1 < out.size()) out[at + 1] = static_cast<float>(radius * std::sin(angle));
      }
    }
  });
}

}  // namespace shardrec::dense
