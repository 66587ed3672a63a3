#include "compute/cpu/transfer/row_codes.h"

#include <algorithm>
#include <cstring>

#include "compute/math/saturation.h"

namespace shardrec::compute::cpu {
namespace {

// Floats that a task converts, about.
constexpr int64_t kTaskFloats = 32 << 10;

static_assert(sizeof(RowScale) == 2 * sizeof(float));

int64_t rows_per_task(const RowCoding& block) {
  return std::max<int64_t>(1, kTaskFloats / block.width);
}

// Where the scale of a row and box lies, and, behind all scales, its codes.
size_t scale_at(const RowCoding& block, int64_t row, size_t box) {
  return (static_cast<size_t>(row) * block.boxes.size() + box) * sizeof(RowScale);
}
size_t codes_at(const RowCoding& block, int64_t row, size_t box) {
  return scale_at(block, block.rows, 0) +
         static_cast<size_t>(row * block.width + block.boxes[box].begin);
}

void convert(const RowEncoding& block, int64_t first, int64_t last, const Kernels& kernels) {
  if (block.boxes.empty()) {
    const int64_t at = first * block.width;
    void* const coded = block.coded + static_cast<size_t>(at) * element_bytes(block.element);
    const int64_t count = (last - first) * block.width;
    if (block.element != Element::kFloat16) {
      kernels.narrow(block.floats + at, block.element, coded, count);
      return;
    }
    const int64_t saturated =
        math::narrow_saturating(kernels, block.floats + at, static_cast<uint16_t*>(coded), count);
    if (block.saturated != nullptr && saturated != 0) {
      block.saturated->fetch_add(saturated, std::memory_order_relaxed);
    }
    return;
  }
  for (int64_t row = first; row < last; ++row) {
    for (size_t b = 0; b < block.boxes.size(); ++b) {
      const ColumnRange& box = block.boxes[b];
      void* codes = block.coded + codes_at(block, row, b);
      const RowScale scale = kernels.quantize(block.floats + row * block.width + box.begin,
                                              static_cast<uint8_t*>(codes), box.end - box.begin);
      std::memcpy(block.coded + scale_at(block, row, b), &scale, sizeof scale);
    }
  }
}

void convert(const RowDecoding& block, int64_t first, int64_t last, const Kernels& kernels) {
  if (block.boxes.empty()) {
    const int64_t at = first * block.width;
    kernels.widen(block.coded + static_cast<size_t>(at) * element_bytes(block.element),
                  block.element, block.floats + at, (last - first) * block.width);
    return;
  }
  for (int64_t row = first; row < last; ++row) {
    for (size_t b = 0; b < block.boxes.size(); ++b) {
      const ColumnRange& box = block.boxes[b];
      const void* codes = block.coded + codes_at(block, row, b);
      RowScale scale;
      std::memcpy(&scale, block.coded + scale_at(block, row, b), sizeof scale);
      kernels.dequantize(static_cast<const uint8_t*>(codes), scale,
                         block.floats + row * block.width + box.begin, box.end - box.begin);
    }
  }
}

}  // namespace

template <class Coding>
void RowCodes::run_tasks(std::span<const Coding> blocks, const Context& context) {
  tasks_.clear();
  tasks_.reserve(blocks.size());
  for (const Coding& block : blocks) {
    const int64_t per_task = rows_per_task(block);
    tasks_.add((block.rows + per_task - 1) / per_task);
  }
  context.threads.parallel_for(tasks_.count(), 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const auto place = tasks_.find(task);
      const Coding& block = blocks[place.group];
      const int64_t per_task = rows_per_task(block);
      const int64_t row = place.task * per_task;
      convert(block, row, std::min(row + per_task, block.rows), context.kernels);
    }
  });
}

void RowCodes::run(std::span<const RowEncoding> blocks, const Context& context) {
  run_tasks(blocks, context);
}
void RowCodes::run(std::span<const RowDecoding> blocks, const Context& context) {
  run_tasks(blocks, context);
}

}  // namespace shardrec::compute::cpu
