// Which bags blocks hold: a warp for each 64 samples, or for each chunk of them.
#pragma once

#include "compute/cuda/kernels/presence.h"
#include "compute/cuda/kernels/tiles.h"

namespace shardrec::compute::cuda {

// All bits of the lanes of the warp.
SHARDREC_DEVICE uint64_t or_of_lanes(uint64_t bits) {
  for (int distance = 1; distance < kWarp; distance *= 2) {
    bits |= __shfl_xor_sync(kAllLanes, bits, distance);
  }
  return bits;
}

// This lane's bits of the 64 samples from `first_sample` on: numbers [i, end) of the ascending samples,
// those before i being of samples before.
template <class SampleAt>
SHARDREC_DEVICE uint64_t bits_of_word(const SampleAt& sample_at, int64_t i, int64_t end,
                                      int64_t first_sample) {
  uint64_t bits = 0;
#pragma unroll
  for (int part = 0; part < 2; ++part) {
    const int64_t own = i + part * kWarp + lane_index();
    if (own >= end) continue;
    const int64_t bit = sample_at(own) - first_sample;
    if (bit < 64) bits |= uint64_t{1} << bit;
  }
  return bits;
}

// A warp for each word. first_word: [count + 1], the words of the blocks before each.
SHARDREC_KERNEL(8)
mark_bags(const shardrec_cuda_bag_bits* blocks, const int64_t* first_word, int32_t count) {
  const int64_t number = grid_warp_index();
  if (number >= first_word[count]) return;
  const int32_t b = last_start(first_word, count, number);
  const shardrec_cuda_bag_bits block = blocks[b];
  const int64_t word = number - first_word[b];
  const auto sample_at = [&](int64_t i) { return int64_t{global(block.sample)[i]}; };
  const int64_t bag = count_below_of(sample_at, block.bags, word * 64);
  const uint64_t bits = or_of_lanes(bits_of_word(sample_at, bag, block.bags, word * 64));
  if (lane_index() == 0) global(block.bits)[word] = bits;
}

// Bits of 64 bags of a chunk: are they in the block? All lanes of the warp call it, and get the same.
SHARDREC_DEVICE uint64_t held_bags(const shardrec_cuda_sent_bags& block, int64_t chunk, int word,
                                   int64_t bags) {
  const int64_t first = chunk * SHARDREC_CUDA_CHUNK + word * 64;
  if (block.sparse_lengths == nullptr) {
    uint64_t bits = 0;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t bag = first + half * kWarp + lane_index();
      const bool held = bag < bags && global(block.dense_lengths)[bag] != 0;
      bits |= uint64_t{__ballot_sync(kAllLanes, held)} << (half * kWarp);
    }
    return bits;
  }
  const uint32_t begin = global(block.chunk_rows)[chunk];
  const uint32_t end = global(block.chunk_rows)[chunk + 1];
  const auto sample_at = [&](int64_t i) { return int64_t{global(block.sparse_lengths)[i].sample}; };
  const int64_t at =
      begin + count_below_of([&](int64_t i) { return sample_at(begin + i); }, end - begin, first);
  return or_of_lanes(bits_of_word(sample_at, at, end, first));
}

// A warp for each chunk. first_chunk: [count + 1], the chunks of the lists before each.
SHARDREC_KERNEL(4)
index_bags_held(const shardrec_cuda_held_bags* lists, const int64_t* first_chunk, int32_t count) {
  const int64_t number = grid_warp_index();
  if (number >= first_chunk[count]) return;
  const int32_t l = last_start(first_chunk, count, number);
  const shardrec_cuda_held_bags list = lists[l];
  const int64_t chunk = number - first_chunk[l];
  const bool wants_bits = list.bits != nullptr;
  uint32_t rows = wants_bits ? global(list.chunk_before)[chunk] : 0;
  for (int word = 0; word < kChunkWords; ++word) {
    uint64_t bits = 0;
    for (int64_t b = 0; b < list.count; ++b) {
      bits |= held_bags(global(list.blocks)[b], chunk, word, list.bags);
    }
    if (wants_bits && lane_index() == 0) {
      global(list.bits)[chunk * kChunkWords + word] = bits;
      global(list.before)[chunk * kChunkWords + word] = rows;
    }
    rows += static_cast<uint32_t>(__popcll(bits));
  }
  if (list.chunk_sums != nullptr && lane_index() == 0) global(list.chunk_sums)[chunk] = rows;
}

// A block for each list. rows: [count], the sum of each list's chunks.
SHARDREC_KERNEL(4) add_up_chunks(const shardrec_cuda_held_bags* lists, int64_t* rows) {
  const shardrec_cuda_held_bags list = lists[blockIdx.x];
  const int64_t chunks = (list.bags + SHARDREC_CUDA_CHUNK - 1) / SHARDREC_CUDA_CHUNK;
  uint32_t before = 0;
  for (int64_t first = 0; first < chunks; first += kThreads) {
    const int64_t chunk = first + threadIdx.x;
    const uint32_t own = chunk < chunks ? list.chunk_sums[chunk] : 0;
    uint32_t all = 0;
    const uint32_t end = before + sum_of_block_up_to_this(own, all);
    if (chunk < chunks) list.chunk_sums[chunk] = end - own;
    before += all;
  }
  if (threadIdx.x == 0) {
    list.chunk_sums[chunks] = before;
    rows[blockIdx.x] = before;
  }
}

}  // namespace shardrec::compute::cuda
