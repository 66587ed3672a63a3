// Ids of blocks that repeat (jobs/routing.h): a hash table for each block says where an id comes first, a scan
// which of the different ones it is. What slots hold depends on the order of threads, places and codes do not.
#pragma once

#include "compute/cuda/jobs/routing.h"
#include "compute/cuda/kernels/chained_scan.h"
#include "compute/cuda/kernels/checks.h"

namespace shardrec::compute::cuda {

// The slot of the id at this place, which has the earliest place of the id that any thread has brought.
template <class Id>
SHARDREC_DEVICE uint32_t put_into_slot(const shardrec_cuda_repeated_ids& block, const Id* ids,
                                       uint32_t place) {
  const Id id = ids[place];
  // Fibonacci hashing (Knuth, volume 3, 6.4): the multiplier is 2^64 / golden ratio.
  auto slot = static_cast<uint32_t>(static_cast<uint64_t>(id) * 0x9E3779B97F4A7C15U >> block.shift);
  for (;;) {
    const uint32_t found = atomicCAS(block.slots + slot, SHARDREC_CUDA_EMPTY_SLOT, place);
    if (found == SHARDREC_CUDA_EMPTY_SLOT) return slot;
    // A slot keeps its id, whichever place of it.
    if (ids[found] == id) {
      if (place < found) atomicMin(block.slots + slot, place);
      return slot;
    }
    slot = (slot + 1) & block.last_slot;
  }
}

// The slots of the ids of a tile, in places. Of lanes with one id, the first one looks for its slot.
template <class Id>
SHARDREC_DEVICE void find_slots_of_tile(const shardrec_cuda_repeated_ids& block, const Id* ids,
                                        int64_t begin) {
  Id own[kTileItems];
  load_items(ids, begin, block.count, own);
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t i = begin + item_of_tile(k);
    const unsigned inside = __ballot_sync(kAllLanes, i < block.count);
    if (i >= block.count) continue;
    const unsigned same = __match_any_sync(inside, own[k]);
    const int first = __ffs(static_cast<int>(same)) - 1;
    uint32_t slot = 0;
    if (lane_index() == first) slot = put_into_slot(block, ids, static_cast<uint32_t>(i));
    block.places[i] = __shfl_sync(inside, slot, first);
  }
}

SHARDREC_KERNEL(4) find_slots_of_ids(shardrec_cuda_repeat_search job) {
  const Tile tile = own_tile(job.tiles);
  const shardrec_cuda_repeated_ids& block = job.blocks[tile.list];
  with_integers(block.ids, block.ids_are_64,
                [&](const auto* ids) { find_slots_of_tile(block, ids, tile.begin); });
}

// Places in place of slots, and how many ids before each are at theirs.
SHARDREC_KERNEL(5) find_places_of_ids(shardrec_cuda_repeat_search job) {
  auto& memory = shared<ScanMemory>();
  const int64_t number = take_tile(job.scan, memory);
  const Tile tile = tile_at(job.tiles, number);
  const shardrec_cuda_repeated_ids block = job.blocks[tile.list];
  uint32_t places[kTileItems];
  load_items_of_warp(block.places, tile.begin, block.count, places);
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    if (tile.begin + item_of_warp(k) < block.count) places[k] = block.slots[places[k]];
  }
  unsigned firsts[kTileItems];  // lanes whose ids are at their places
  uint64_t of_warp = 0;
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t i = tile.begin + item_of_warp(k);
    if (i < block.count) block.places[i] = places[k];
    firsts[k] = __ballot_sync(kAllLanes, i < block.count && places[k] == static_cast<uint32_t>(i));
    of_warp += static_cast<unsigned>(__popc(firsts[k]));
  }
  auto before = static_cast<uint32_t>(
      sum_before_warp(job.scan, memory, job.tiles.first[tile.list], number, of_warp));
  const unsigned below = (1U << lane_index()) - 1;
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t i = tile.begin + item_of_warp(k);
    if (i < block.count) {
      block.firsts_before[i] = before + static_cast<unsigned>(__popc(firsts[k] & below));
    }
    before += static_cast<unsigned>(__popc(firsts[k]));
    if (i + 1 == block.count) job.unique[tile.list] = before;
  }
}

// Zeros behind the first `bytes` bytes of a section, up to a multiple of 8.
SHARDREC_DEVICE void fill_up(void* section, int64_t bytes) {
  const int64_t at = bytes + static_cast<int64_t>(threadIdx.x);
  if (at < (bytes + 7) / 8 * 8) static_cast<unsigned char*>(section)[at] = 0;
}

template <class Code, class Id>
SHARDREC_DEVICE void write_dictionary_tile(const shardrec_cuda_id_dictionary& block, const Id* ids,
                                           int64_t begin) {
  uint32_t places[kTileItems];
  load_items(block.places, begin, block.count, places);
  if (begin == 0) {
    fill_up(block.unique_ids, block.unique * static_cast<int64_t>(sizeof(Id)));
    fill_up(block.codes, block.count * static_cast<int64_t>(sizeof(Code)));
  }
  Code* const codes = static_cast<Code*>(block.codes);
  Id* const unique_ids = static_cast<Id*>(block.unique_ids);
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t i = begin + item_of_tile(k);
    if (i >= block.count) continue;
    const uint32_t code = block.firsts_before[places[k]];
    codes[i] = static_cast<Code>(code);
    if (places[k] == static_cast<uint32_t>(i)) unique_ids[code] = ids[i];
  }
}

SHARDREC_KERNEL(4) write_dictionaries_of_blocks(shardrec_cuda_dictionary_writing job) {
  const Tile tile = own_tile(job.id_tiles);
  const shardrec_cuda_id_dictionary& block = job.dictionaries[tile.list];
  with_integers(block.ids, block.ids_are_64, [&](const auto* ids) {
    if (block.code_bytes == 1) {
      write_dictionary_tile<uint8_t>(block, ids, tile.begin);
    } else if (block.code_bytes == 2) {
      write_dictionary_tile<uint16_t>(block, ids, tile.begin);
    } else {
      write_dictionary_tile<uint32_t>(block, ids, tile.begin);
    }
  });
}

SHARDREC_KERNEL(4) move_words(shardrec_cuda_dictionary_writing job) {
  const Tile tile = own_tile(job.word_tiles);
  const shardrec_cuda_moved_words& moved = job.moved[tile.list];
  uint64_t words[kTileItems];
  load_items(moved.from, tile.begin, moved.count, words);
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t i = tile.begin + item_of_tile(k);
    if (i < moved.count) moved.to[i] = words[k];
  }
}

}  // namespace shardrec::compute::cuda
