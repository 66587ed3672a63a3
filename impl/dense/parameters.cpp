#include "dense/parameters.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <utility>

#include "compute/math/scalar.h"
#include "core/error.h"

namespace shardrec::dense {
namespace {

float* floats(const core::Pages& pages) noexcept {
  return static_cast<float*>(const_cast<void*>(static_cast<const void*>(pages.data())));
}

}  // namespace

Parameters::Parameters(const plan::Optimizer& optimizer) : optimizer_(optimizer) {}

void Parameters::append(std::vector<ParameterInfo> added) {
  int64_t size = size_;
  for (ParameterInfo& info : added) {
    info.offset = size;
    size += info.size;
  }
  core::require_room((2 + optimizer_.states()) * static_cast<uint64_t>(size) * sizeof(float),
                     "a stack with parameters, gradients and optimizer state");
  const auto moved = [&](const core::Pages& old) {
    core::Pages pages(static_cast<size_t>(size) * sizeof(float));
    std::copy_n(floats(old), size_, floats(pages));
    return pages;
  };
  core::Pages values = moved(values_);
  core::Pages gradients = moved(gradients_);
  infos_.reserve(infos_.size() + added.size());
  optimizer_.reserve(added.size(), size - size_);

  values_ = std::move(values);
  gradients_ = std::move(gradients);
  const auto of = [](const core::Pages& pages, const ParameterInfo& info) {
    return std::span(floats(pages) + info.offset, static_cast<size_t>(info.size));
  };
  for (size_t i = 0; i < infos_.size(); ++i) {
    optimizer_.rebind(i, of(values_, infos_[i]), of(gradients_, infos_[i]));
  }
  for (const ParameterInfo& info : added) {
    optimizer_.add(of(values_, info), of(gradients_, info));
  }
  std::move(added.begin(), added.end(), std::back_inserter(infos_));
  size_ = size;
}

float* Parameters::values(int64_t offset) const noexcept { return floats(values_) + offset; }

float* Parameters::gradients(int64_t offset) const noexcept { return floats(gradients_) + offset; }

float* Parameters::state(int state, int64_t offset) const noexcept {
  return optimizer_.state(state).data() + offset;
}

void Parameters::clear() noexcept {
  values_.clear();
  gradients_.clear();
  optimizer_.clear_states();
}

void Parameters::step(core::Threads& threads) {
  optimizer_.begin_step();
  optimizer_.step(0, optimizer_.parameters(), threads);
}

compute::ElementUpdate Parameters::begin_step() noexcept {
  optimizer_.begin_step();
  return optimizer_.settings();
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
