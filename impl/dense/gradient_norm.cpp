#include "dense/gradient_norm.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/kernels.h"
#include "dense/kernels.h"

namespace shardrec::dense {
namespace {

constexpr int64_t kWidened = 2048;  // elements of 16 bits that are widened at a time
constexpr size_t kLanes = 16;

compute::Element element_of(const core::FlatView& gradient) noexcept {
  return compute::element_of(static_cast<shardrec_dtype>(gradient.dtype));
}

template <class T>
T* elements_of(const core::FlatView& gradient, int64_t first) noexcept {
  return static_cast<T*>(gradient.data) + first;
}

// body(floats, count) for pieces of a gradient of 16 bits, as float32; with write_back they are
// rounded to nearest into the gradient again.
template <class Body>
void for_each_widened(const core::FlatView& gradient, int64_t first, int64_t count, bool write_back,
                      const Body& body) {
  const compute::Kernels& table = compute::cpu_kernels();
  const compute::Element element = element_of(gradient);
  std::array<float, kWidened> floats;
  for (int64_t at = 0; at < count; at += kWidened) {
    const int64_t some = std::min(kWidened, count - at);
    uint16_t* const narrow = elements_of<uint16_t>(gradient, first + at);
    table.widen(narrow, element, floats.data(), some);
    body(floats.data(), some);
    if (write_back) table.narrow(floats.data(), element, narrow, some);
  }
}

// The sum of (x[i] * scale)^2, over the lanes of Kernels::square_sum.
double scaled_square_sum(const double* x, double scale, int64_t count) noexcept {
  std::array<double, kLanes> lanes{};
  for (int64_t i = 0; i < count; ++i) {
    const double value = x[i] * scale;
    lanes[static_cast<size_t>(i) % kLanes] += value * value;
  }
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

// scale: of float64 gradients. Another one than 1 is for squares beyond float64, beside which those of
// the other dtypes are lost or, times its square, right.
double square_sum(const core::FlatView& gradient, int64_t first, int64_t count, double scale) {
  const Kernels& table = kernels();
  if (gradient.dtype == SHARDREC_FLOAT64) {
    return scaled_square_sum(elements_of<double>(gradient, first), scale, count);
  }
  if (gradient.dtype == SHARDREC_FLOAT32) {
    return table.square_sum(elements_of<float>(gradient, first), count) * scale * scale;
  }
  double sum = 0;
  for_each_widened(gradient, first, count, false,
                   [&](const float* x, int64_t some) { sum += table.square_sum(x, some); });
  return sum * scale * scale;
}

// The largest magnitude: bits without the sign are ordered as magnitudes are, and NaN comes last.
template <class Float, class Bits>
double largest(const Float* x, int64_t count) noexcept {
  constexpr auto kMagnitude = static_cast<Bits>(std::numeric_limits<Bits>::max() >> 1);
  Bits most = 0;
  for (int64_t i = 0; i < count; ++i) {
    most = std::max(most, static_cast<Bits>(std::bit_cast<Bits>(x[i]) & kMagnitude));
  }
  return std::bit_cast<Float>(most);
}

double largest_of(const core::FlatView& gradient, int64_t first, int64_t count) {
  if (gradient.dtype == SHARDREC_FLOAT64) {
    return largest<double, uint64_t>(elements_of<double>(gradient, first), count);
  }
  if (gradient.dtype == SHARDREC_FLOAT32) {
    return largest<float, uint32_t>(elements_of<float>(gradient, first), count);
  }
  const auto most = static_cast<uint16_t>(
      largest<uint16_t, uint16_t>(elements_of<uint16_t>(gradient, first), count));
  float widened = 0;
  compute::cpu_kernels().widen(&most, element_of(gradient), &widened, 1);
  return widened;
}

double sum_of(std::span<const double> blocks) noexcept {
  double sum = 0;
  for (const double of_block : blocks) sum += of_block;
  return sum;
}

template <class T>
void clamp(T* x, T bound, int64_t count) noexcept {
  for (int64_t i = 0; i < count; ++i) {
    x[i] = x[i] < -bound ? -bound : x[i] > bound ? bound : x[i];
  }
}

}  // namespace

void GradientNorm::add(const core::FlatView& gradient) {
  reserve_more(gradients_, 1);
  reserve_more(block_values_, static_cast<size_t>(Extents::blocks_of(gradient.size)));
  extents_.add(gradient.size);
  gradients_.push_back(gradient);
  block_values_.resize(static_cast<size_t>(extents_.blocks()));
}

template <class Of>
void GradientNorm::for_each_block(const Of& of, core::Threads& threads) {
  threads.parallel_for(extents_.elements(), kBlockElements, [&](int64_t begin, int64_t end) {
    extents_.for_blocks(begin, end, [&](size_t at, int64_t block, int64_t first, int64_t last) {
      block_values_[static_cast<size_t>(block)] = of(gradients_[at], first, last - first);
    });
  });
}

template <class Body>
void GradientNorm::for_each_piece(const Body& body, core::Threads& threads) {
  threads.parallel_for(extents_.elements(), kBlockElements, [&](int64_t begin, int64_t end) {
    extents_.for_elements(begin, end, [&](size_t at, int64_t first, int64_t last) {
      body(gradients_[at], first, last - first);
    });
  });
}

double l2_norm(NormBlocks& blocks) {
  // Below it squares may have been lost to underflow.
  constexpr double kSmall = 1e-280;
  const double sum = sum_of(blocks.square_sums(1));
  if (sum >= kSmall && sum <= std::numeric_limits<double>::max()) return std::sqrt(sum);
  const double most = infinity_norm(blocks);
  if (!(most > 0 && most <= std::numeric_limits<double>::max())) return most;
  // Finite float64 gradients whose squares are not: again with magnitudes of about 1.
  const double scale = std::ldexp(1.0, -std::clamp(std::ilogb(most), -1000, 1000));
  return std::sqrt(sum_of(blocks.square_sums(scale))) / scale;
}

double infinity_norm(NormBlocks& blocks) {
  double most = 0;
  for (const double of_block : blocks.largest()) {
    if (std::isnan(of_block)) return of_block;
    most = std::max(most, of_block);
  }
  return most;
}

std::optional<double> clip_factor(double norm, double bound) noexcept {
  constexpr double kNotZero = 1e-6;  // PyTorch's
  if (!std::isfinite(norm)) return {};
  const double exact = bound / (norm + kNotZero);
  if (!(static_cast<float>(exact) < 1)) return {};
  return exact;
}

// Those of gradients in the host's memory.
class GradientNorm::Blocks final : public NormBlocks {
 public:
  Blocks(GradientNorm& norm, core::Threads& threads) : norm_(norm), threads_(threads) {}

  std::span<const double> square_sums(double scale) override {
    norm_.for_each_block(
        [scale](const core::FlatView& gradient, int64_t first, int64_t count) {
          return square_sum(gradient, first, count, scale);
        },
        threads_);
    return norm_.block_values_;
  }
  std::span<const double> largest() override {
    norm_.for_each_block(largest_of, threads_);
    return norm_.block_values_;
  }

 private:
  GradientNorm& norm_;
  core::Threads& threads_;
};

double GradientNorm::l2(core::Threads& threads) {
  Blocks blocks(*this, threads);
  return l2_norm(blocks);
}

double GradientNorm::infinity(core::Threads& threads) {
  Blocks blocks(*this, threads);
  return infinity_norm(blocks);
}

void GradientNorm::bound_norm(double norm, double bound, core::Threads& threads) {
  const std::optional<double> given = clip_factor(norm, bound);
  if (!given) return;
  const double exact = *given;
  const auto factor = static_cast<float>(exact);
  const Kernels& table = kernels();
  for_each_piece(
      [&](const core::FlatView& gradient, int64_t first, int64_t count) {
        if (gradient.dtype == SHARDREC_FLOAT64) {
          double* const x = elements_of<double>(gradient, first);
          for (int64_t i = 0; i < count; ++i) x[i] *= exact;
        } else if (gradient.dtype == SHARDREC_FLOAT32) {
          table.scale(elements_of<float>(gradient, first), factor, count);
        } else {
          for_each_widened(gradient, first, count, true,
                           [&](float* x, int64_t some) { table.scale(x, factor, some); });
        }
      },
      threads);
}

void GradientNorm::bound_values(double bound, core::Threads& threads) {
  const auto narrow = static_cast<float>(bound);
  for_each_piece(
      [&](const core::FlatView& gradient, int64_t first, int64_t count) {
        if (gradient.dtype == SHARDREC_FLOAT64) {
          clamp(elements_of<double>(gradient, first), bound, count);
        } else if (gradient.dtype == SHARDREC_FLOAT32) {
          clamp(elements_of<float>(gradient, first), narrow, count);
        } else {
          for_each_widened(gradient, first, count, true,
                           [&](float* x, int64_t some) { clamp(x, narrow, some); });
        }
      },
      threads);
}

}  // namespace shardrec::dense
