// Ids to the owners of their rows (jobs/routing.h). A feature that every block holds as it is, is copied
// by tiles of its ids. Of any other, a warp takes the bags of a strip, and its ids, 32 at a time, in
// their order: it counts how many go to each block, then, when sums over the strips say where its own
// begin, writes them there.
#pragma once

#include "compute/cuda/kernels/routing/strips.h"

namespace shardrec::compute::cuda {

template <class Id>
SHARDREC_DEVICE void check_tile(const shardrec_cuda_routed_ids& feature, const Id* list,
                                int64_t begin, shardrec_cuda_checked_list& checked) {
  Id ids[kTileItems];
  load_items(list, begin, feature.count, ids);
  uint64_t outside = 0;
  FirstWrong wrong;
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    if (begin + item_of_tile(k) >= feature.count || in_range(ids[k], feature.rows)) continue;
    ++outside;
    wrong.see(item_of_tile(k));
  }
  if (feature.policy == SHARDREC_CUDA_REFUSE) {
    wrong.tell(&checked.wrong, begin);
  } else {
    add_to_sum(&checked.sum, outside);
  }
}

// The weights of a tile of ids.
SHARDREC_DEVICE void copy_weights(const float* from, int64_t begin, int64_t count, float* to) {
  float weights[kTileItems];
  load_items(from, begin, count, weights);
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t i = begin + item_of_tile(k);
    if (i < count) to[i] = weights[k];
  }
}

// The last feature whose ids begin at or before one of the batch.
SHARDREC_DEVICE int32_t feature_of_id(const shardrec_cuda_id_routing& job, int64_t id) {
  int32_t first = 0;
  for (int32_t left = job.feature_count; left > 1;) {
    const int32_t half = left / 2;
    if (first_id_of(job, first + half) <= id) first += half;
    left -= half;
  }
  return first;
}

// Ids of features that every block holds as they are, in a tile of the whole batch. Few tiles have ids of
// several features. Calls visit(i, id, feature) for each of this thread's ids, behind its check.
template <class Id, class Visit>
SHARDREC_DEVICE void check_tile_of_batch(const shardrec_cuda_id_routing& job, const Id* list,
                                         int64_t begin, Visit visit) {
  Id ids[kTileItems];
  load_items(list, begin, job.all_ids, ids);
  const int64_t last = begin + kTile <= job.all_ids ? begin + kTile - 1 : job.all_ids - 1;
  const int32_t first_feature = feature_of_id(job, begin);
  const bool alone = first_feature == feature_of_id(job, last);
  uint64_t outside = 0;
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t i = begin + item_of_tile(k);
    if (i >= job.all_ids) continue;
    const int32_t f = alone ? first_feature : feature_of_id(job, i);
    const shardrec_cuda_routed_ids& feature = job.features[f];
    visit(i, ids[k], feature);
    if (feature.intervals != 0 || in_range(ids[k], feature.rows)) continue;
    if (feature.policy == SHARDREC_CUDA_REFUSE) {
      atomicMax(reinterpret_cast<unsigned long long*>(&job.checked[f].wrong),
                ~static_cast<unsigned long long>(i - first_id_of(job, f)));
    } else if (alone) {
      ++outside;
    } else {
      add_to(&job.checked[f].sum, 1);
    }
  }
  add_to_sum(&job.checked[first_feature].sum, outside);
}

SHARDREC_DEVICE void check_ids(const shardrec_cuda_id_routing& job) {
  const Tile tile = own_tile(job.tiles);
  if (job.lengths != nullptr) {
    if (!has_good_lengths(job)) return;
    with_integers(given_ids(job, *job.features), job.features->ids_are_64, [&](const auto* ids) {
      check_tile_of_batch(job, ids, tile.begin, [](auto...) {});
    });
    return;
  }
  const shardrec_cuda_routed_ids& feature = job.features[tile.list];
  with_integers(given_ids(job, feature), feature.ids_are_64, [&](const auto* ids) {
    check_tile(feature, ids, tile.begin, job.checked[tile.list]);
  });
}

// What a block gets that holds a feature whole.
SHARDREC_DEVICE void write_total(const shardrec_cuda_id_routing& job, int64_t block) {
  const shardrec_cuda_block_total& total = job.totals[block];
  if (total.begin != nullptr) job.counts[block] = *total.end - *total.begin;
}

// Features that every block holds as they are. Blocks of threads take the tiles of ids, those behind them the
// totals of blocks.
SHARDREC_KERNEL(4) check_whole_features(shardrec_cuda_id_routing job) {
  if (blockIdx.x < job.tiles.count) {
    check_ids(job);
    return;
  }
  const int64_t block = (blockIdx.x - job.tiles.count) * kThreads + threadIdx.x;
  if (block < job.block_count) write_total(job, block);
}

// The places of the warp in the blocks of its feature.
SHARDREC_DEVICE BlockPlace* places_of(const shardrec_cuda_routed_ids& feature, const Strip& strip,
                                      StripMemory& memory) {
  return feature.places == nullptr ? memory.places
                                   : feature.places + strip.number * feature.block_count;
}

SHARDREC_DEVICE int64_t id_at(const void* ids, int32_t are_64, uint32_t i) {
  return are_64 != 0 ? static_cast<const int64_t*>(ids)[i] : static_cast<const int32_t*>(ids)[i];
}

// The id of a strip that a lane has.
struct WalkedId {
  bool exists;  // the last lanes may have none
  uint32_t i;   // in the feature
  int64_t id;
  uint32_t sample;
};

// Calls visit(id) with 32 ids of a strip after the other, an id for each lane. first_id: where the
// feature's begin in its list. Of a sequence, at_chunk(chunk) is called before the first id of each chunk.
template <class AtChunk, class Visit>
SHARDREC_DEVICE void walk_strip(const shardrec_cuda_routed_ids& feature, const Strip& strip,
                                const void* ids_of_list, uint32_t first_id, StripMemory& memory,
                                AtChunk at_chunk, Visit visit) {
  const uint32_t ids = find_bags(feature, strip, memory);
  const uint32_t first = ids_of(feature.strip_sums[strip.number] - feature.strip_sums[0]);
  const auto lane = static_cast<uint32_t>(lane_index());
  const auto load = [&](uint32_t begin) {
    return begin + lane < ids
               ? id_at(ids_of_list, feature.ids_are_64, first_id + first + begin + lane)
               : 0;
  };
  int64_t next = load(0);
  for (uint32_t begin = 0; begin < ids;) {
    uint32_t count = ids - begin < kWarp ? ids - begin : kWarp;
    if (feature.sequence != 0) {
      const uint32_t in_chunk = (first + begin) % SHARDREC_CUDA_CHUNK;
      if (in_chunk == 0) at_chunk((first + begin) / SHARDREC_CUDA_CHUNK);
      if (SHARDREC_CUDA_CHUNK - in_chunk < count) count = SHARDREC_CUDA_CHUNK - in_chunk;
    }
    const bool exists = lane < count;
    const int64_t id = next;
    next = load(begin + count);  // on its way while this one is placed
    const int bag = exists ? bag_of_id(memory, begin + lane) : 0;
    visit(WalkedId{.exists = exists,
                   .i = first + begin + lane,
                   .id = id,
                   .sample = static_cast<uint32_t>(strip.first_bag() + bag)});
    begin += count;
  }
}

// Calls put(block, placed) with where an id goes, for all blocks of the lane's interval (negative: none).
template <class Put>
SHARDREC_DEVICE void place_in_interval(const shardrec_cuda_routed_ids& feature, BlockPlace* places,
                                       int32_t interval, uint32_t sample, Put put) {
  for (int32_t column = 0; column < feature.columns; ++column) {
    const int32_t block =
        interval < 0 ? -1 : feature.interval_blocks[int64_t{column} * feature.intervals + interval];
    place_ids(places, block, sample, [&](const Placed& placed) { put(block, placed); });
  }
}

// Ids outside the table, as their policy has it. All lanes of the warp call it.
SHARDREC_DEVICE void note_outside(const shardrec_cuda_routed_ids& feature, const WalkedId& id,
                                  bool outside, shardrec_cuda_checked_list& checked) {
  const unsigned lanes = __ballot_sync(kAllLanes, outside ? 1 : 0);
  if (lanes == 0) return;
  const bool first = lanes >> lane_index() == 1;
  if (feature.policy != SHARDREC_CUDA_REFUSE) {
    if (first) add_to(&checked.sum, static_cast<uint64_t>(__popc(lanes)));
  } else if (__ffs(static_cast<int>(lanes)) - 1 == lane_index()) {
    atomicMax(reinterpret_cast<unsigned long long*>(&checked.wrong),
              ~static_cast<unsigned long long>(id.i));
  }
  if (outside && feature.policy == SHARDREC_CUDA_DROP && feature.kept_lengths != nullptr) {
    atomicAdd(feature.kept_lengths + id.sample, ~0U);  // one less
  }
}

SHARDREC_KERNEL(4) count_strips(shardrec_cuda_id_routing job) {
  const int64_t number = grid_warp_index();
  if (number >= job.strips) return;
  const Strip strip = strip_at(job, number);
  const shardrec_cuda_routed_ids& feature = job.features[strip.feature];
  if (feature.intervals == 0 || !has_good_lengths(job)) return;
  StripMemory& memory = shared<StripMemories>().of_warp[warp_index()];
  BlockPlace* const places = places_of(feature, strip, memory);
  for (int32_t b = lane_index(); b < feature.block_count; b += kWarp) {
    places[b] = {0, 0, kNoSample};
  }
  if (feature.kept_lengths != nullptr) {
    for (int64_t bag = strip.first_bag() + lane_index();
         bag < feature.bags && bag < strip.first_bag() + kStrip; bag += kWarp) {
      feature.kept_lengths[bag] = feature.lengths[bag];
    }
  }
  __syncwarp();
  walk_strip(
      feature, strip, given_ids(job, feature), first_id_of(job, strip.feature), memory,
      [](uint32_t) {},
      [&](const WalkedId& id) {
        const bool outside = id.exists && !in_range(id.id, feature.rows);
        note_outside(feature, id, outside, job.checked[strip.feature]);
        const int64_t row = id.exists ? row_for(id.id, feature) : -1;
        const int32_t interval = row < 0 ? -1 : interval_of(feature, row);
        place_in_interval(feature, places, interval, id.sample, [](int32_t, const Placed&) {});
      });
  for (int32_t b = lane_index(); b < feature.block_count; b += kWarp) {
    feature.block_sums[b * feature.strips + strip.number] =
        uint64_t{places[b].bags} << 32 | places[b].ids;
  }
}

}  // namespace shardrec::compute::cuda
