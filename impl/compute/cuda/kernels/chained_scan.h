// Exclusive sums over lists that are cut into tiles, in one pass: a chained scan with decoupled look-back (Merrill and
// Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016). A block of threads adds up a tile and
// tells the sum at once; then it adds the sums of the tiles before it in the list, back to one that has told the sum
// up to its end.
//
// A tile waits for earlier tiles only, and a block takes the earliest tile that no block has begun. So the tiles
// that a block waits for belong to blocks that run or have ended, in whichever order blocks begin, and of these
// the earliest one waits for nobody.
#pragma once

#include "compute/cuda/jobs/scans.h"
#include "compute/cuda/kernels/tiles.h"

namespace shardrec::compute::cuda {

// What a kernel that scans has in shared memory.
struct ScanMemory {
  uint64_t of_warp[kWarps];
  uint64_t before;  // the sum of the list's tiles before
  uint32_t number;
  uint32_t is_last;
};

// Item k of this thread, counted from the tile's first one: a warp has neighbouring items, 32 of them in each k.
SHARDREC_DEVICE int item_of_warp(int k) {
  return (warp_index() * kTileItems + k) * kWarp + lane_index();
}

// These items of a list of so many, 0 behind its end; all loads are on their way at once.
template <class Number>
SHARDREC_DEVICE void load_items_of_warp(const Number* list, int64_t begin, int64_t count,
                                        Number (&items)[kTileItems]) {
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t i = begin + item_of_warp(k);
    items[k] = i < count ? list[i] : Number{0};
  }
}

// Puts the sum of the warp's items before each in its place; returns the sum of them all. All lanes of
// the warp call it.
SHARDREC_DEVICE uint64_t sum_items_before(uint64_t (&items)[kTileItems]) {
  uint64_t all = 0;
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const uint64_t up_to = sum_of_lanes_up_to_this(items[k]);
    items[k] = all + up_to - items[k];
    all += __shfl_sync(kAllLanes, up_to, kWarp - 1);
  }
  return all;
}

// What the sum that a tile tells is of.
enum class Told : uint32_t { kNothing = 0, kOfTile = 1, kUpToEnd = 2 };

struct ToldSum {
  Told told;
  uint64_t sum;
};

SHARDREC_DEVICE void tell(const shardrec_cuda_scan& scan, int64_t tile, ToldSum sum) {
  uint64_t* const words = scan.tiles[tile].words;
  const uint64_t told = uint64_t{static_cast<uint32_t>(sum.told)} << 32;
  store_relaxed(words, told | (sum.sum & UINT32_MAX));
  store_relaxed(words + 1, told | sum.sum >> 32);
}

SHARDREC_DEVICE ToldSum hear(const shardrec_cuda_scan& scan, int64_t tile) {
  const uint64_t* const words = scan.tiles[tile].words;
  const uint64_t low = load_relaxed(words);
  const uint64_t high = load_relaxed(words + 1);
  if (low >> 32 != high >> 32) return {Told::kNothing, 0};  // between two stores of tell()
  return {static_cast<Told>(low >> 32), high << 32 | (low & UINT32_MAX)};
}

// The sum of the tiles from `first` on, the first one of the list, that are before `number`. All lanes of a warp call
// it, each of which listens to one of 32 tiles.
SHARDREC_DEVICE uint64_t sum_of_tiles_before(const shardrec_cuda_scan& scan, int64_t first,
                                             int64_t number) {
  uint64_t sum = 0;
  for (int64_t end = number;; end -= kWarp) {
    const int64_t tile = end - 1 - lane_index();
    ToldSum own{Told::kUpToEnd, 0};  // before the list
    unsigned up_to_end = 0;
    unsigned needed =
        0;  // lanes whose sums are: down to the nearest one that knows the sum up to its end
    do {
      if (tile >= first) own = hear(scan, tile);
      up_to_end = __ballot_sync(kAllLanes, own.told == Told::kUpToEnd);
      needed = up_to_end == 0 ? kAllLanes : up_to_end ^ (up_to_end - 1);
    } while ((__ballot_sync(kAllLanes, own.told == Told::kNothing) & needed) != 0);
    const uint64_t of_lane = (needed >> lane_index() & 1) != 0 ? own.sum : 0;
    sum += __shfl_sync(kAllLanes, sum_of_lanes_up_to_this(of_lane), kWarp - 1);
    if (up_to_end != 0) return sum;
  }
}

// The number of the tile of this block. All threads of the block call it, once.
SHARDREC_DEVICE int64_t take_tile(const shardrec_cuda_scan& scan, ScanMemory& memory) {
  if (threadIdx.x == 0) memory.number = atomicAdd(scan.begun, 1U);
  __syncthreads();
  return memory.number;
}

// The sum of the items of the list before those of this warp. first: the first tile of the list. of_warp: the sum of
// the warp's items, which all of its lanes know. All threads of the block call it, once.
SHARDREC_DEVICE uint64_t sum_before_warp(const shardrec_cuda_scan& scan, ScanMemory& memory,
                                         int64_t first, int64_t number, uint64_t of_warp) {
  if (lane_index() == 0) memory.of_warp[warp_index()] = of_warp;
  __syncthreads();
  if (warp_index() == 0) {
    uint64_t of_tile = 0;
    for (int warp = 0; warp < kWarps; ++warp) of_tile += memory.of_warp[warp];
    uint64_t before = 0;
    if (number != first) {
      if (lane_index() == 0) tell(scan, number, {Told::kOfTile, of_tile});
      before = sum_of_tiles_before(scan, first, number);
    }
    if (lane_index() == 0) {
      tell(scan, number, {Told::kUpToEnd, before + of_tile});
      memory.before = before;
    }
  }
  __syncthreads();
  uint64_t sum = memory.before;
  for (int warp = 0; warp < warp_index(); ++warp) sum += memory.of_warp[warp];
  return sum;
}

// Is this block the last one of so many to come here? All threads of the block call it, behind a barrier. Those of
// the last one see what every block wrote before it came. ended: 0 before the operation; is_last: shared.
SHARDREC_DEVICE bool is_last_of_blocks(uint32_t* ended, uint32_t& is_last, int64_t blocks) {
  if (threadIdx.x == 0) {
    __threadfence();
    is_last = atomicAdd(ended, 1U) + 1 == blocks ? 1 : 0;
    __threadfence();
  }
  __syncthreads();
  return is_last != 0;
}

}  // namespace shardrec::compute::cuda
