// The items that lists of bits have, counted: for sums of what the parts of a node have of each sample
// (compute::NodeSum). A block of threads for each union of lists, a thread for each word of 256 at a time.
#pragma once

#include "compute/cuda/kernels/presence.h"

namespace shardrec::compute::cuda {

// rows: [blocks], the items of each union; null: not wanted.
SHARDREC_KERNEL(4)
count_present_words(const shardrec_cuda_present_words* unions, int64_t* rows) {
  const shardrec_cuda_present_words of = unions[blockIdx.x];
  uint64_t before = 0;
  for (int64_t first = 0; first < of.words; first += kThreads) {
    const int64_t word = first + threadIdx.x;
    uint64_t bits = 0;
    if (word < of.words) {
      for (int64_t l = 0; l < of.count; ++l) bits |= of.lists[l][word];
    }
    const auto own = static_cast<uint32_t>(__popcll(bits));
    uint32_t all = 0;
    const uint64_t end = before + sum_of_block_up_to_this(own, all);
    if (word < of.words) {
      if (of.bits != nullptr) of.bits[word] = bits;
      if (of.before != nullptr) of.before[word] = static_cast<uint32_t>(end - own);
    }
    before += all;
  }
  if (rows != nullptr && threadIdx.x == 0) rows[blockIdx.x] = static_cast<int64_t>(before);
}

}  // namespace shardrec::compute::cuda
