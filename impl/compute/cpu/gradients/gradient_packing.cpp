#include "compute/cpu/gradients/gradient_packing.h"

#include <algorithm>

namespace shardrec::compute::cpu {
namespace {

const void* element_at(const OutputGradient& gradient, int64_t row, int64_t column) {
  return static_cast<const std::byte*>(gradient.rows) +
         (static_cast<size_t>(row) * gradient.stride + static_cast<size_t>(column)) *
             element_bytes(gradient.element);
}

// out = sum of the gradients of some samples, columns [column, column + columns).
void add_samples(std::span<const uint32_t> samples, const OutputGradient& gradient, int64_t column,
                 float* out, int64_t columns, const Kernels& kernels) {
  if (samples.empty()) {
    std::fill(out, out + columns, 0.0F);
    return;
  }
  kernels.widen(element_at(gradient, samples[0], column), gradient.element, out, columns);
  for (const uint32_t sample : samples.subspan(1)) {
    constexpr int64_t kColumns = 256;
    float floats[kColumns];
    for (int64_t c = 0; c < columns; c += kColumns) {
      const int64_t count = std::min(kColumns, columns - c);
      kernels.widen(element_at(gradient, sample, column + c), gradient.element, floats, count);
      kernels.add(floats, out + c, count);
    }
  }
}

int64_t items_of(const BagGradients& block) { return block.bags->samples; }
int64_t items_of(const SequenceGradients& block) { return block.ids; }

void pack(const BagGradients& block, int64_t chunk, const Kernels& kernels) {
  const bool expands = block.samples.starts != nullptr;
  ScaleGradient scale{.divisor = block.divisor,
                      .max_gradient = block.max_gradient,
                      .element = expands ? Element::kFloat32 : block.gradient.element};
  int64_t row = block.bags->chunk_rows[chunk];
  const int64_t row_end = block.bags->chunk_rows[chunk + 1];
  for (int64_t bag = chunk * kChunk; row < row_end; ++bag) {
    if (!block.bags->holds(row, bag)) continue;
    if (block.lengths != nullptr) scale.length = static_cast<float>(block.lengths[bag]);
    for (const ColumnMap& columns : block.columns) {
      float* out = block.out + row * block.width + columns.offset;
      const void* given = out;
      if (expands) {
        add_samples(block.samples.of(bag), block.gradient, columns.column, out, columns.count,
                    kernels);
      } else {
        given = element_at(block.gradient, bag, columns.column);
      }
      if (block.unscaled != nullptr) {
        const ScaleGradient only_mean{.length = scale.length, .element = scale.element};
        kernels.scale_gradient(only_mean, given,
                               block.unscaled + row * block.width + columns.offset, columns.count);
      }
      kernels.scale_gradient(scale, given, out, columns.count);
    }
    ++row;
  }
}

void pack(const SequenceGradients& block, int64_t chunk, const Kernels& kernels) {
  const ScaleGradient scale{.divisor = block.divisor,
                            .max_gradient = block.max_gradient,
                            .element = block.gradient.element};
  float* out = block.out + int64_t{block.chunk_rows[chunk]} * block.width;
  const int64_t last = std::min((chunk + 1) * kChunk, block.ids);
  for (int64_t id = chunk * kChunk; id < last; ++id) {
    const int32_t interval = block.intervals == nullptr ? 0 : block.intervals[id];
    if (interval < block.first_interval || interval >= block.end_interval) continue;
    for (const ColumnMap& columns : block.columns) {
      kernels.scale_gradient(scale, element_at(block.gradient, id, columns.column),
                             out + columns.offset, columns.count);
    }
    out += block.width;
  }
}

}  // namespace

template <class Gradients>
void GradientPacking::run_chunks(std::span<const Gradients> blocks, const Context& context) {
  chunks_.clear();
  chunks_.reserve(blocks.size());
  for (const Gradients& block : blocks) chunks_.add(chunks_of(items_of(block)));
  context.threads.parallel_for(chunks_.count(), 1, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      const auto place = chunks_.find(c);
      pack(blocks[place.group], place.task, context.kernels);
    }
  });
}

void GradientPacking::run(std::span<const BagGradients> blocks, const Context& context) {
  run_chunks(blocks, context);
}
void GradientPacking::run(std::span<const SequenceGradients> blocks, const Context& context) {
  run_chunks(blocks, context);
}

}  // namespace shardrec::compute::cpu
