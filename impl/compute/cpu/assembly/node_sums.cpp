#include "compute/cpu/assembly/node_sums.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "compute/cpu/tasks/shares.h"

namespace shardrec::compute::cpu {
namespace {

constexpr int64_t kWordBits = 64;
constexpr int64_t kChunkWords = kChunk / kWordBits;

int64_t words_of(const NodeSum& sum) { return (sum.samples + kWordBits - 1) / kWordBits; }

// Bits of 64 samples: has any addend a row of them?
uint64_t any_present(const NodeSum& sum, int64_t word) {
  uint64_t any = 0;
  for (const PresentRows& addend : sum.addends) any |= addend.present[word];
  return any;
}

// next_row: room for a number per addend.
void add_chunk(const NodeSum& sum, int64_t chunk, const Kernels& kernels, int64_t* next_row) {
  const std::span<const PresentRows> addends = sum.addends;
  const int64_t cols = sum.cols;
  const int64_t first = chunk * kChunkWords;
  const int64_t last = std::min(first + kChunkWords, words_of(sum));
  float* out = sum.out;
  std::fill_n(next_row, addends.size(), int64_t{0});
  for (int64_t w = 0; w < first; ++w) {
    for (size_t a = 0; a < addends.size(); ++a) {
      next_row[a] += std::popcount(addends[a].present[w]);
    }
    out += std::popcount(any_present(sum, w)) * cols;
  }
  for (int64_t w = first; w < last; ++w) {
    for (uint64_t any = any_present(sum, w); any != 0; any &= any - 1, out += cols) {
      const uint64_t bit = any & -any;
      bool started = false;
      for (size_t a = 0; a < addends.size(); ++a) {
        if ((addends[a].present[w] & bit) == 0) continue;
        const float* x = addends[a].rows + next_row[a]++ * addends[a].stride;
        if (started) {
          kernels.add(x, out, cols);
        } else {
          std::memcpy(out, x, static_cast<size_t>(cols) * sizeof(float));
          started = true;
        }
      }
    }
  }
}

}  // namespace

void NodeSummation::count(std::span<const NodeSum> sums, std::span<int64_t> rows,
                          const Context& context) {
  for_each_task(sums.size(), context, [&](size_t s) {
    int64_t count = 0;
    for (int64_t w = 0; w < words_of(sums[s]); ++w) {
      count += std::popcount(any_present(sums[s], w));
    }
    rows[s] = count;
  });
}

void NodeSummation::run(std::span<const NodeSum> sums, const Context& context) {
  size_t most_addends = 0;
  chunks_.clear();
  chunks_.reserve(sums.size());
  for (const NodeSum& sum : sums) {
    most_addends = std::max(most_addends, sum.addends.size());
    chunks_.add(chunks_of(sum.samples));
  }
  const size_t scratch_bytes = most_addends * sizeof(int64_t);
  for_each_with_scratch(chunks_.count(), scratch_bytes, context,
                        [&](int64_t c, std::byte* scratch) {
                          const auto place = chunks_.find(c);
                          add_chunk(sums[place.group], place.task, context.kernels,
                                    static_cast<int64_t*>(static_cast<void*>(scratch)));
                        });
}

}  // namespace shardrec::compute::cpu
