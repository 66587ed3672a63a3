// Output gradients of one bag after another, divided, clamped and, from 16 bits, widened.
#include "compute/cpu/kernels/dispatch.h"
#include "compute/kernels.h"
#include "measured.h"

namespace shardrec::bench {
namespace {

using compute::Element;

constexpr size_t kElementsOfBatch = 1 << 20;

void scale_gradient(benchmark::State& state, const compute::ScaleGradient& scale, int64_t columns) {
  Numbers gradient(kElementsOfBatch * compute::element_bytes(scale.element));
  Numbers out(kElementsOfBatch * sizeof(float));
  const size_t row_bytes = static_cast<size_t>(columns) * compute::element_bytes(scale.element);
  const int64_t bags = static_cast<int64_t>(kElementsOfBatch) / columns;
  for (auto _ : state) {
    const auto* in = static_cast<const std::byte*>(gradient.data());
    for (int64_t b = 0; b < bags; ++b) {
      compute::cpu_kernels().scale_gradient(scale, in + static_cast<size_t>(b) * row_bytes,
                                            out.floats() + b * columns, columns);
    }
    benchmark::ClobberMemory();
  }
  const auto bytes = static_cast<int64_t>(row_bytes) + columns * 4;
  state.SetBytesProcessed(state.iterations() * bags * bytes);
  state.SetItemsProcessed(state.iterations() * bags);
}

}  // namespace

void register_scale_gradient() {
  for (const Element element : kElements) {
    for (const float clamp : {0.0F, 1.0F}) {
      for (const int64_t columns : {16, 64, 256}) {
        const std::string name = "scale_gradient/" + name_of(element) +
                                 (clamp > 0 ? "/clamped" : "") +
                                 "/columns:" + std::to_string(columns);
        const compute::ScaleGradient scale{.divisor = 2, .max_gradient = clamp, .element = element};
        benchmark::RegisterBenchmark(name.c_str(), [scale, columns](benchmark::State& state) {
          scale_gradient(state, scale, columns);
        });
      }
    }
  }
}

}  // namespace shardrec::bench
