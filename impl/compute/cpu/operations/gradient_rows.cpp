#include "compute/cpu/operations/gradient_rows.h"

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
  context.threads.parallel_for(std::ssize(blocks), 1, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) locate(blocks[static_cast<size_t>(b)]);
  });
}

}  // namespace shardrec::compute::cpu
