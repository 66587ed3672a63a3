#include "compute/cpu/gradients/gradient_rows.h"

#include <algorithm>
#include <numeric>

#include "compute/cpu/tasks/shares.h"

namespace shardrec::compute::cpu {
namespace {

void locate(const GradientBlock& block) {
  if (block.by_sample) {
    for_each_bag(*block.bags, [&](int64_t bag, int64_t sample, uint32_t) {
      block.out[bag] = block.data + sample * block.stride;
    });
    return;
  }
  for (int64_t r = 0; r < block.rows; ++r) block.out[r] = block.data + r * block.stride;
}

}  // namespace

void locate_gradients(std::span<const GradientBlock> blocks, const Context& context) {
  for_each_task(blocks.size(), context, [&](size_t b) { locate(blocks[b]); });
}

void number_occurrences(const SingleOccurrences& rows) {
  std::iota(rows.run, rows.run + rows.rows + 1, int64_t{0});
  std::iota(rows.bags, rows.bags + rows.rows, uint32_t{0});
  std::fill_n(rows.blocks, rows.rows, uint32_t{0});
}

}  // namespace shardrec::compute::cpu
