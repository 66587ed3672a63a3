#include "dense/ddp/rank_sums.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "comm/collective/reduce.h"
#include "compute/cpu/kernels/dispatch.h"
#include "compute/kernels.h"
#include "compute/math/saturation.h"
#include "core/tensor.h"

namespace shardrec::dense {
namespace {

constexpr int64_t kBlock = 2048;  // elements: what all ranks bring of it stays in a cache
// Of narrow elements, which are widened into memory of the sums' own: all ranks' together.
constexpr int64_t kMostWide = int64_t{1} << 18;
constexpr int64_t kLeastBlock = 64;

alignas(64) constexpr std::byte kZeros[kBlock * sizeof(double)] = {};

template <class T>
T* as(void* data) noexcept {
  return static_cast<T*>(data);
}

bool is_narrow(shardrec_dtype dtype) noexcept {
  return dtype == SHARDREC_FLOAT16 || dtype == SHARDREC_BFLOAT16;
}

template <class T>
void apply(const GradientScale& scale, T* values, int64_t count) noexcept {
  int exponent = 0;
  if (std::frexp(scale.divisor, &exponent) == 0.5) {
    // A power of two: multiplying gives the same bits, and is quicker. 1 changes nothing.
    const auto reciprocal = static_cast<T>(1 / scale.divisor);
    for (int64_t i = 0; reciprocal != 1 && i < count; ++i) values[i] *= reciprocal;
  } else {
    const auto divisor = static_cast<T>(scale.divisor);
    for (int64_t i = 0; i < count; ++i) values[i] /= divisor;
  }
  if (scale.factor != 1) {
    const auto factor = static_cast<T>(scale.factor);
    for (int64_t i = 0; i < count; ++i) values[i] *= factor;
  }
}

}  // namespace

void convert(const void* in, shardrec_dtype from, void* out, shardrec_dtype to, int64_t count) {
  if (count == 0) return;
  if (from == to) {
    std::memcpy(out, in, static_cast<size_t>(count) * core::dtype_size(from));
  } else if (to == SHARDREC_FLOAT32) {
    compute::cpu_kernels().widen(in, compute::element_of(from), as<float>(out), count);
  } else {
    compute::cpu_kernels().narrow(static_cast<const float*>(in), compute::element_of(to), out,
                                  count);
  }
}

double headroom(const GradientScale& scale, int ranks) noexcept {
  constexpr int kMostExponent = 127;  // of float32
  const double growth = std::abs(scale.factor) * ranks / scale.divisor;
  int exponent = 0;
  const double fraction = std::frexp(growth, &exponent);  // growth = fraction * 2^exponent
  if (!(growth > 1)) return 1;
  return std::ldexp(1, std::min(fraction == 0.5 ? exponent - 1 : exponent, kMostExponent));
}

int64_t convert_for_way(const void* in, void* out, shardrec_dtype wire, int64_t count) {
  if (wire == SHARDREC_FLOAT16) {
    return compute::math::narrow_saturating(compute::cpu_kernels(), static_cast<const float*>(in),
                                            as<uint16_t>(out), count);
  }
  convert(in, SHARDREC_FLOAT32, out, wire, count);
  return 0;
}

RankSums::RankSums(int ranks)
    : views_(static_cast<size_t>(ranks)),
      narrow_block_(std::clamp(kMostWide / ranks, kLeastBlock, kBlock)),
      block_(kBlock),
      sent_(kBlock) {}

void RankSums::make_room(shardrec_dtype wire) {
  if (is_narrow(wire)) wide_.resize(views_.size() * static_cast<size_t>(narrow_block_));
}

template <class T>
void RankSums::add_up_as(std::span<const std::byte* const> inputs, int64_t first, int64_t count,
                         const GradientScale& scale, T* out) {
  const auto bytes = static_cast<size_t>(count) * sizeof(T);
  for (size_t p = 0; p < inputs.size(); ++p) {
    const std::byte* data =
        inputs[p] == nullptr ? kZeros : inputs[p] + static_cast<size_t>(first) * sizeof(T);
    views_[p] = {data, bytes};
  }
  comm::reduce_ranks<T>(comm::Reduction::kSum, views_, {out, static_cast<size_t>(count)});
  apply(scale, out, count);
}

void RankSums::add_up_narrow(std::span<const std::byte* const> inputs, shardrec_dtype wire,
                             int64_t first, int64_t count, float* out) {
  const auto bytes = static_cast<size_t>(count) * sizeof(float);
  for (size_t p = 0; p < inputs.size(); ++p) {
    if (inputs[p] == nullptr) {
      views_[p] = {kZeros, bytes};
      continue;
    }
    float* const wide = wide_.data() + p * static_cast<size_t>(narrow_block_);
    convert(inputs[p] + static_cast<size_t>(first) * core::dtype_size(wire), wire, wide,
            SHARDREC_FLOAT32, count);
    views_[p] = std::as_bytes(std::span(wide, static_cast<size_t>(count)));
  }
  comm::reduce_ranks<float>(comm::Reduction::kSum, views_, {out, static_cast<size_t>(count)});
}

int64_t RankSums::add_up(std::span<const std::byte* const> inputs, shardrec_dtype wire,
                         int64_t first, int64_t count, const GradientScale& scale, void* out,
                         shardrec_dtype dtype, bool for_way) {
  int64_t saturated = 0;
  const size_t size = core::dtype_size(dtype);
  const int64_t block = is_narrow(wire) ? narrow_block_ : kBlock;
  for (int64_t at = 0; at < count; at += block) {
    const int64_t some = std::min(block, count - at);
    std::byte* const to = as<std::byte>(out) + static_cast<size_t>(at) * size;
    if (wire == SHARDREC_FLOAT64) {
      add_up_as(inputs, first + at, some, scale, as<double>(to));
      continue;
    }
    float* const sums = is_narrow(dtype) ? block_.data() : as<float>(to);
    if (is_narrow(wire)) {
      add_up_narrow(inputs, wire, first + at, some, sums);
      apply(scale, sums, some);
    } else {
      add_up_as(inputs, first + at, some, scale, sums);
    }
    if (!is_narrow(dtype)) continue;
    if (for_way) {
      saturated += convert_for_way(sums, to, dtype, some);
    } else {
      convert(sums, SHARDREC_FLOAT32, to, dtype, some);
    }
  }
  return saturated;
}

int64_t RankSums::rescale(void* values, shardrec_dtype dtype, shardrec_dtype wire, int64_t count,
                          const GradientScale& scale) {
  int64_t saturated = 0;
  const size_t size = core::dtype_size(dtype);
  for (int64_t at = 0; at < count; at += kBlock) {
    const int64_t some = std::min(kBlock, count - at);
    std::byte* const block = as<std::byte>(values) + static_cast<size_t>(at) * size;
    if (dtype == SHARDREC_FLOAT64) {
      apply(scale, as<double>(block), some);
    } else if (is_narrow(dtype)) {
      convert(block, dtype, block_.data(), SHARDREC_FLOAT32, some);
      apply(scale, block_.data(), some);
      convert(block_.data(), SHARDREC_FLOAT32, block, dtype, some);
    } else {
      if (wire != dtype) {
        saturated += convert_for_way(block, sent_.data(), wire, some);
        convert(sent_.data(), wire, block, dtype, some);
      }
      apply(scale, as<float>(block), some);
    }
  }
  return saturated;
}

}  // namespace shardrec::dense
