// Scans over tiles in one pass give the sums before each item, in any order of blocks. The CPU does not show blocks
// that run at the same time. What a block finds then, sums of single tiles, is written down for it here.
#include "compute/cuda/kernels/chained_scan.h"

#include <algorithm>

#include "orders.h"

namespace shardrec::test {
namespace {

using compute::cuda::kThreads;
using compute::cuda::kTile;
using compute::cuda::kTileItems;
using compute::cuda::ScanMemory;
using compute::cuda::Told;

struct List {
  const uint64_t* in;
  uint64_t* out;
  int64_t count;
};

struct Scan {
  const List* lists;
  shardrec_cuda_tiles tiles;
  shardrec_cuda_scan scan;
  uint32_t* last_blocks;
};

__global__ void sum_lists(Scan job) {
  auto& memory = compute::cuda::shared<ScanMemory>();
  const int64_t number = take_tile(job.scan, memory);
  const compute::cuda::Tile tile = compute::cuda::tile_at(job.tiles, number);
  const List list = job.lists[tile.list];
  uint64_t items[kTileItems];
  compute::cuda::load_items_of_warp(list.in, tile.begin, list.count, items);
  const uint64_t of_warp = compute::cuda::sum_items_before(items);
  const uint64_t before =
      sum_before_warp(job.scan, memory, job.tiles.first[tile.list], number, of_warp);
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t i = tile.begin + compute::cuda::item_of_warp(k);
    if (i < list.count) list.out[i] = before + items[k];
  }
  const bool is_last =
      compute::cuda::is_last_of_blocks(job.scan.ended, memory.is_last, job.tiles.count);
  if (is_last && threadIdx.x == 0) atomicAdd(job.last_blocks, 1U);
}

// The memory of a scan over so many tiles.
shardrec_cuda_scan scan_of(Queue& queue, size_t tiles) {
  auto* const counts = queue.upload(std::vector<uint32_t>(2));
  return {.begun = counts,
          .ended = counts + 1,
          .tiles = queue.upload(std::vector<shardrec_cuda_scan_tile>(tiles))};
}

using ChainedScans = InEachOrder;

TEST_P(ChainedScans, SumListsOfEveryNumberOfTiles) {
  Queue queue;
  std::vector<std::vector<uint64_t>> lists;
  uint64_t number = 1;
  for (const size_t count : {0, 1, 33, kTile - 1, kTile, 0, kTile + 1, 70 * kTile, 3 * kTile + 5}) {
    std::vector<uint64_t>& list = lists.emplace_back(count);
    for (uint64_t& x : list) x = number *= 0x9E3779B97F4A7C15U;  // their sums wrap
  }
  std::vector<List> jobs;
  std::vector<int64_t> first_tile{0};
  for (const std::vector<uint64_t>& list : lists) {
    const auto count = static_cast<int64_t>(list.size());
    const uint64_t* const in = count == 0 ? nullptr : queue.upload(list);
    jobs.push_back({in, queue.allocate<uint64_t>(std::max(list.size(), size_t{1})), count});
    first_tile.push_back(first_tile.back() + (count + kTile - 1) / kTile);
  }
  const auto tiles = static_cast<unsigned>(first_tile.back());
  auto* const last_blocks = queue.upload(std::vector<uint32_t>{0});
  queue.run(sum_lists, tiles, kThreads, sizeof(ScanMemory),
            Scan{.lists = queue.upload(jobs),
                 .tiles = {.first = queue.upload(first_tile),
                           .count = tiles,
                           .lists = static_cast<int32_t>(jobs.size())},
                 .scan = scan_of(queue, tiles),
                 .last_blocks = last_blocks});
  for (size_t l = 0; l < lists.size(); ++l) {
    std::vector<uint64_t> expected;
    uint64_t sum = 0;
    for (const uint64_t x : lists[l]) {
      expected.push_back(sum);
      sum += x;
    }
    EXPECT_TRUE(queue.download(jobs[l].out, expected.size()) == expected) << "list " << l;
  }
  EXPECT_EQ(queue.download(last_blocks, 1)[0], 1U);
}

SIMT_IN_EACH_ORDER(ChainedScans);

__global__ void look_back(shardrec_cuda_scan scan, int64_t first, int64_t number, uint64_t* sum) {
  const uint64_t before = compute::cuda::sum_of_tiles_before(scan, first, number);
  if (threadIdx.x == 0) *sum = before;
}

shardrec_cuda_scan_tile told(Told what, uint64_t sum) {
  const uint64_t above = uint64_t{static_cast<uint32_t>(what)} << 32;
  return {.words = {above | (sum & UINT32_MAX), above | sum >> 32}};
}

// Tiles in the middle of a list that have told their own sums only, back to one that has told more.
TEST(LookBack, AddsTheSumsOfTilesOneByOne) {
  constexpr int64_t kTiles = 200;
  constexpr uint64_t kSum =
      (uint64_t{1} << 40) + (uint64_t{1} << 31);  // of any tile: both words have some
  constexpr uint64_t kBefore = uint64_t{7} << 60;
  Queue queue;
  auto* const sum = queue.allocate<uint64_t>(1);
  for (const int64_t knows : {0, 3, 63, 64, 100, 149}) {
    std::vector<shardrec_cuda_scan_tile> tiles(kTiles, told(Told::kOfTile, kSum));
    tiles[static_cast<size_t>(knows)] = told(Told::kUpToEnd, kBefore);
    // What lies further back does not matter: of another list, or not told yet.
    for (int64_t t = 0; t < knows; ++t) {
      tiles[static_cast<size_t>(t)] =
          t % 2 == 0 ? told(Told::kNothing, 0) : told(Told::kUpToEnd, 1);
    }
    shardrec_cuda_scan scan = scan_of(queue, 1);
    scan.tiles = queue.upload(tiles);
    for (int64_t number = knows + 1; number <= kTiles; number += 1 + number % 9) {
      const int64_t first = number % 2 == 0 ? knows : 0;
      queue.run(look_back, 1, 32, 0, scan, first, number, sum);
      EXPECT_EQ(queue.download(sum, 1)[0],
                kBefore + static_cast<uint64_t>(number - knows - 1) * kSum)
          << number << " behind " << knows;
    }
  }
}

__global__ void hear_tile(shardrec_cuda_scan scan, uint32_t* what) {
  *what = static_cast<uint32_t>(compute::cuda::hear(scan, 0).told);
}

TEST(LookBack, HearsNothingOfWordsThatDoNotAgree) {
  Queue queue;
  auto* const what = queue.allocate<uint32_t>(1);
  shardrec_cuda_scan scan = scan_of(queue, 1);
  for (const Told low : {Told::kNothing, Told::kOfTile, Told::kUpToEnd}) {
    for (const Told high : {Told::kNothing, Told::kOfTile, Told::kUpToEnd}) {
      scan.tiles = queue.upload(std::vector<shardrec_cuda_scan_tile>{
          {.words = {told(low, 5).words[0], told(high, 5).words[1]}}});
      queue.run(hear_tile, 1, 1, 0, scan, what);
      EXPECT_EQ(queue.download(what, 1)[0],
                static_cast<uint32_t>(low == high ? low : Told::kNothing));
    }
  }
}

}  // namespace
}  // namespace shardrec::test
