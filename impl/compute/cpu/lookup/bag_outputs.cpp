#include "compute/cpu/lookup/bag_outputs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

namespace shardrec::compute::cpu {
namespace {

// Outputs of more bytes would push each other out of the last cache before anybody reads them. What
// the system says of that cache is not asked: on virtual machines it is often not so.
constexpr size_t kStreamingBytes = size_t{16} << 20;

bool starts_line(const void* address) { return std::bit_cast<uintptr_t>(address) % 64 == 0; }
bool fills_lines(size_t elements, Element element) {
  return elements * element_bytes(element) % 64 == 0;
}

// May the rows of a block be written past the caches?
bool is_in_lines(const BagOutputs& block) {
  return starts_line(block.out) && fills_lines(block.out_stride, block.out_element) &&
         fills_lines(static_cast<size_t>(block.table.width), block.out_element);
}

void look_up(const BagOutputs& block, int64_t chunk, bool streaming, const Kernels& kernels) {
  const int64_t first = chunk * kChunk;
  const int64_t items = std::min(kChunk, block.items - first);
  // First id of each bag, or each id of a sequence.
  std::array<int64_t, kChunk + 1> offsets;
  offsets[0] = block.chunk_ids[chunk];
  if (block.lengths == nullptr) {
    std::iota(offsets.begin(), offsets.begin() + items + 1, offsets[0]);
  } else {
    const uint32_t* lengths = block.lengths + first;
    for (size_t i = 0; i < static_cast<size_t>(items); ++i) {
      offsets[i + 1] = offsets[i] + lengths[i];
    }
  }
  auto* const out = static_cast<std::byte*>(block.out);
  const PooledLookup job{
      .table = block.table.data,
      .element = block.table.element,
      .coded = block.table.coded,
      .stride = block.table.stride,
      .width = block.table.width,
      .ids = block.ids,
      .weights = block.weights,
      .offsets = offsets.data(),
      .out = out + static_cast<size_t>(first) * block.out_stride * element_bytes(block.out_element),
      .out_element = block.out_element,
      .out_stride = block.out_stride,
      .mean = block.mean,
      .streaming = streaming};
  kernels.pooled_lookup(job, 0, items);
}

}  // namespace

void OutputLookup::run(std::span<const BagOutputs> blocks, size_t output_bytes,
                       const Context& context) {
  tasks_.clear();
  tasks_.reserve(blocks.size());
  for (const BagOutputs& block : blocks) tasks_.add(chunks_of(block.items));
  context.threads.parallel_for(tasks_.count(), 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const auto place = tasks_.find(task);
      const BagOutputs& block = blocks[place.group];
      look_up(block, place.task, output_bytes > kStreamingBytes && is_in_lines(block),
              context.kernels);
    }
  });
}

}  // namespace shardrec::compute::cpu
