#include "compute/cpu/transfer/rank_means.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace shardrec::compute::cpu {
namespace {

// Elements that a task averages, about.
constexpr int64_t kGrainAveraged = 64 << 10;
// Partial sums of a block stay in the first-level cache: one block per level of the tree.
constexpr int64_t kSumBlock = 128;
using SumBlock = std::array<float, kSumBlock>;

void read_floats(const Kernels& kernels, const std::byte* from, Element element, int64_t count,
                 float* to) {
  if (element == Element::kFloat32) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof *to);
  } else {
    kernels.widen(from, element, to, count);
  }
}

void write_floats(const Kernels& kernels, const float* from, Element element, int64_t count,
                  std::byte* to) {
  if (element == Element::kFloat32) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof *from);
  } else {
    kernels.narrow(from, element, to, count);
  }
}

// The tree over these ranks, of elements [at, at + count).
void add_up(const Kernels& kernels, std::span<const std::byte* const> ranks, Element element,
            int64_t at, int64_t count, float* sum) {
  if (ranks.size() == 1) {
    read_floats(kernels, ranks[0] + static_cast<size_t>(at) * element_bytes(element), element,
                count, sum);
    return;
  }
  const size_t half = std::bit_floor(ranks.size() - 1);
  SumBlock right;
  add_up(kernels, ranks.first(half), element, at, count, sum);
  add_up(kernels, ranks.subspan(half), element, at, count, right.data());
  for (int64_t i = 0; i < count; ++i) sum[i] += right[static_cast<size_t>(i)];
}

}  // namespace

void average(const RankMeans& means, const Context& context) {
  const auto divisor = static_cast<float>(means.ranks.size());
  context.threads.parallel_for(means.count, kGrainAveraged, [&](int64_t first, int64_t last) {
    for (int64_t at = first; at < last; at += kSumBlock) {
      const int64_t count = std::min(kSumBlock, last - at);
      SumBlock mean;
      add_up(context.kernels, means.ranks, means.element, at, count, mean.data());
      for (float& x : std::span(mean).first(static_cast<size_t>(count))) x /= divisor;
      write_floats(context.kernels, mean.data(), means.element, count,
                   means.means + static_cast<size_t>(at) * element_bytes(means.element));
    }
  });
}

}  // namespace shardrec::compute::cpu
