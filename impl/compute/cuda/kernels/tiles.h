// The part of a list of lists that a block of threads works on: a tile of one list.
#pragma once

#include "compute/cuda/jobs/tiles.h"
#include "compute/cuda/kernels/device.h"

namespace shardrec::compute::cuda {

inline constexpr int kTile = SHARDREC_CUDA_TILE;
// A thread has so many items of a tile, kThreads apart.
inline constexpr int kTileItems = kTile / kThreads;

struct Tile {
  int32_t list;
  int64_t begin;  // its first item, among those of the list
};

// Tile `number` of those of all lists. All lanes of the warp call it.
SHARDREC_DEVICE Tile tile_at(const shardrec_cuda_tiles& tiles, int64_t number) {
  const int32_t list = last_start(tiles.first, tiles.lists, number);
  return {.list = list, .begin = (number - tiles.first[list]) * kTile};
}

// The tile of this block of threads.
SHARDREC_DEVICE Tile own_tile(const shardrec_cuda_tiles& tiles) {
  return tile_at(tiles, blockIdx.x);
}

// Item k of this thread, counted from the tile's first one.
SHARDREC_DEVICE int item_of_tile(int k) { return k * kThreads + static_cast<int>(threadIdx.x); }

// How many of `count` ascending numbers at(0), at(1), ... are below `bound`.
template <class At, class Number>
SHARDREC_DEVICE int64_t count_below_of(const At& at, int64_t count, Number bound) {
  int64_t first = 0;
  while (count > 0) {
    const int64_t half = count / 2;
    if (at(first + half) < bound) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return first;
}
template <class Number>
SHARDREC_DEVICE int64_t count_below(const Number* numbers, int64_t count, Number bound) {
  return count_below_of([=](int64_t i) { return numbers[i]; }, count, bound);
}

}  // namespace shardrec::compute::cuda
