// How a list is worked off by threads: element by element; or, where the work needs scratch, in
// shares of consecutive elements, a few for each thread, each with scratch of its own from the
// context's work memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "compute/cpu/tasks/context.h"
#include "core/align.h"

namespace shardrec::compute::cpu {

// Calls body(i) for i in [0, count): tasks that are worth a thread each.
template <class Body>
void for_each_task(size_t count, const Context& context, Body body) {
  context.threads.parallel_for(static_cast<int64_t>(count), 1, [&](int64_t first, int64_t last) {
    for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) body(i);
  });
}

// Calls body(i, scratch) for i in [0, count), scratch: scratch_bytes, 64-byte aligned, of any content.
template <class Body>
void for_each_with_scratch(int64_t count, size_t scratch_bytes, const Context& context, Body body) {
  constexpr int64_t kSharesPerThread = 8;
  const int64_t shares = std::min(count, kSharesPerThread * context.threads.count());
  const size_t stride = core::align_up(scratch_bytes, 64);
  std::byte* const scratch = context.work.resize(static_cast<size_t>(shares) * stride);
  context.threads.parallel_for(shares, 1, [&](int64_t first, int64_t last) {
    for (int64_t share = first; share < last; ++share) {
      std::byte* const own = scratch + static_cast<size_t>(share) * stride;
      for (int64_t i = count * share / shares; i < count * (share + 1) / shares; ++i) body(i, own);
    }
  });
}

}  // namespace shardrec::compute::cpu
