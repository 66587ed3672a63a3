#include "dense/gradient_norm.h"

#include <cmath>
#include <cstdint>

#include "dense/kernels.h"

namespace shardrec::dense {

size_t GradientNorm::add(std::span<float> gradient) {
  const auto size = static_cast<int64_t>(gradient.size());
  reserve_more(gradients_, 1);
  reserve_more(block_sums_, static_cast<size_t>(Extents::blocks_of(size)));
  extents_.reserve(1);
  const size_t index = extents_.add(size);
  gradients_.push_back(gradient.data());
  block_sums_.resize(static_cast<size_t>(extents_.blocks()));
  return index;
}

void GradientNorm::rebind(size_t parameter, std::span<float> gradient) noexcept {
  gradients_[parameter] = gradient.data();
}

double GradientNorm::norm(core::Threads& threads) {
  const Kernels& table = kernels();
  threads.parallel_for(extents_.elements(), kBlockElements, [&](int64_t begin, int64_t end) {
    extents_.for_blocks(begin, end, [&](size_t at, int64_t block, int64_t first, int64_t last) {
      block_sums_[static_cast<size_t>(block)] =
          table.square_sum(gradients_[at] + first, last - first);
    });
  });
  double sum = 0;
  for (const double of_block : block_sums_) sum += of_block;
  return std::sqrt(sum);
}

void GradientNorm::scale(float factor, core::Threads& threads) {
  const Kernels& table = kernels();
  threads.parallel_for(extents_.elements(), kBlockElements, [&](int64_t begin, int64_t end) {
    extents_.for_elements(begin, end, [&](size_t at, int64_t first, int64_t last) {
      table.scale(gradients_[at] + first, factor, last - first);
    });
  });
}

double GradientNorm::clip(double max_norm, core::Threads& threads) {
  constexpr double kNotZero = 1e-6;  // PyTorch's
  const double before = norm(threads);
  if (!std::isfinite(before)) return before;
  const auto factor = static_cast<float>(max_norm / (before + kNotZero));
  if (factor < 1) scale(factor, threads);
  return before;
}

}  // namespace shardrec::dense
