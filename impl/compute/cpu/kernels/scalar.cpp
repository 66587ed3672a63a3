// The kernels in plain C++, as near to the promises in kernels.h as code can be. Slow where the
// compiler has no instruction for std::fma; every other set is compared with this one, bit by bit.
#include "compute/math/scalar.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compute/cpu/kernels/scalar_rows.h"
#include "compute/cpu/kernels/scalar_steps.h"
#include "compute/cpu/kernels/sets.h"
#include "compute/math/quantize.h"

namespace shardrec::compute::cpu::scalar {
namespace {

void scale_gradient(const ScaleGradient& scale, const void* gradient, float* out,
                    int64_t columns) noexcept {
  const float most = scale.max_gradient;
  for (int64_t c = 0; c < columns; ++c) {
    float value = element_at(gradient, scale.element, static_cast<size_t>(c)) / scale.divisor;
    if (most != 0) value = math::clamped(value, most);
    out[c] = value / scale.length;
  }
}

void widen(const void* in, Element element, float* out, int64_t count) noexcept {
  for (int64_t i = 0; i < count; ++i) out[i] = element_at(in, element, static_cast<size_t>(i));
}

void narrow(const float* in, Element element, void* out, int64_t count) noexcept {
  switch (element) {
    case Element::kFloat32:
      std::copy_n(in, count, static_cast<float*>(out));
      break;
    case Element::kFloat16:
      std::transform(in, in + count, static_cast<uint16_t*>(out), narrowed<math::Float16>);
      break;
    case Element::kBfloat16:
      std::transform(in, in + count, static_cast<uint16_t*>(out), narrowed<math::Bfloat16>);
      break;
  }
}

RowScale quantize(const float* in, uint8_t* out, int64_t count) noexcept {
  if (count == 0) return {};
  const auto [least, most] = std::minmax_element(in, in + count);
  const bool finite = std::all_of(in, in + count, [](float x) { return std::isfinite(x); });
  const math::RowCode code = math::code_of_row(*least, *most, finite);
  for (int64_t c = 0; c < count; ++c) {
    const float steps =
        code.inverse == 0 ? 0 : math::unrounded_code(in[c], code.scale.offset, code.inverse);
    out[c] = static_cast<uint8_t>(std::lrint(steps));
  }
  return code.scale;
}

void dequantize(const uint8_t* in, const RowScale& scale, float* out, int64_t count) noexcept {
  for (int64_t c = 0; c < count; ++c) {
    out[c] = math::decoded(static_cast<float>(in[c]), scale.scale, scale.offset);
  }
}

void add(const float* x, float* sum, int64_t columns) noexcept {
  for (int64_t c = 0; c < columns; ++c) sum[c] += x[c];
}

void divide(float* x, float divisor, int64_t columns) noexcept {
  for (int64_t c = 0; c < columns; ++c) x[c] /= divisor;
}

bool narrow_ids(const int64_t* ids, int64_t rows, int32_t* out, int64_t count) noexcept {
  bool good = true;
  for (int64_t i = 0; i < count; ++i) {
    good = good && static_cast<uint64_t>(ids[i]) < static_cast<uint64_t>(rows);
    out[i] = static_cast<int32_t>(ids[i]);
  }
  return good;
}

template <class Id>
void pool_bags(const PooledLookup& job, int64_t first_bag, int64_t last_bag) noexcept {
  const Id* ids = static_cast<const Id*>(job.ids.data);
  for (int64_t bag = first_bag; bag < last_bag; ++bag) {
    constexpr int64_t kTile = 64;
    for (int64_t first = 0; first < job.width; first += kTile) {
      const int64_t columns = std::min(kTile, job.width - first);
      float sum[kTile] = {};
      float offsets = 0;  // of coded rows
      for (int64_t i = job.offsets[bag]; i < job.offsets[bag + 1]; ++i) {
        const auto* row =
            static_cast<const std::byte*>(job.table) +
            static_cast<size_t>(ids[i]) * job.stride * (job.coded ? 1 : element_bytes(job.element));
        float weight = job.weights == nullptr ? 1.0F : job.weights[i];
        if (job.coded) {
          RowScale scale;
          std::memcpy(&scale, row + job.width, sizeof scale);
          offsets = std::fma(weight, scale.offset, offsets);
          weight *= scale.scale;
          for (int64_t c = 0; c < columns; ++c) {
            sum[c] = math::add_element(
                weight, static_cast<float>(std::to_integer<uint8_t>(row[first + c])), sum[c]);
          }
          continue;
        }
        for (int64_t c = 0; c < columns; ++c) {
          sum[c] = math::add_element(
              weight, element_at(row, job.element, static_cast<size_t>(first + c)), sum[c]);
        }
      }
      if (job.coded) {
        for (int64_t c = 0; c < columns; ++c) sum[c] += offsets;
      }
      const auto ids_of_bag = static_cast<float>(job.offsets[bag + 1] - job.offsets[bag]);
      if (job.mean && ids_of_bag != 0) divide(sum, ids_of_bag, columns);
      narrow(sum, job.out_element,
             static_cast<std::byte*>(job.out) +
                 (static_cast<size_t>(bag) * job.out_stride + static_cast<size_t>(first)) *
                     element_bytes(job.out_element),
             columns);
    }
  }
}

void pooled_lookup(const PooledLookup& job, int64_t first_bag, int64_t last_bag) noexcept {
  if (job.ids.is_64) {
    pool_bags<int64_t>(job, first_bag, last_bag);
  } else {
    pool_bags<int32_t>(job, first_bag, last_bag);
  }
}

}  // namespace
}  // namespace shardrec::compute::cpu::scalar

namespace shardrec::compute::cpu {

const Kernels& scalar_kernels() {
  using namespace scalar;
  static constexpr Kernels kKernels{.name = "scalar",
                                    .pooled_lookup = pooled_lookup,
                                    .row_update = row_update,
                                    .row_sums = row_sums,
                                    .row_gradients = row_gradients,
                                    .row_norms = row_norms,
                                    .row_rescale = row_rescale,
                                    .element_update = element_update,
                                    .element_sums = element_sums,
                                    .scale_gradient = scale_gradient,
                                    .widen = widen,
                                    .narrow = narrow,
                                    .quantize = quantize,
                                    .dequantize = dequantize,
                                    .dot = dot,
                                    .narrow_ids = narrow_ids,
                                    .add = add,
                                    .divide = divide};
  return kKernels;
}

}  // namespace shardrec::compute::cpu
