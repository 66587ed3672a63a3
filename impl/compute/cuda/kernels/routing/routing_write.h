// The blocks that ids go to, written (jobs/routing.h; how: routing.h).
#pragma once

#include "compute/cuda/kernels/routing/routing.h"

namespace shardrec::compute::cuda {

SHARDREC_DEVICE void put_id(const shardrec_cuda_routed_ids& feature,
                            const shardrec_cuda_written_block& block, int64_t at, int64_t row) {
  if (feature.writes_64 != 0) {
    static_cast<int64_t*>(block.ids)[at] = row;
  } else {
    static_cast<int32_t*>(block.ids)[at] = static_cast<int32_t>(row);
  }
}

template <class Id>
SHARDREC_DEVICE void copy_tile(const shardrec_cuda_routed_ids& feature, const Id* list,
                               const float* weights, int64_t begin) {
  Id ids[kTileItems];
  load_items(list, begin, feature.count, ids);
  for (int32_t b = 0; b < feature.block_count; ++b) {
    const shardrec_cuda_written_block& block = feature.blocks[b];
#pragma unroll
    for (int k = 0; k < kTileItems; ++k) {
      const int64_t i = begin + item_of_tile(k);
      if (i < feature.count) put_id(feature, block, i, row_for(ids[k], feature));
    }
    if (block.weights != nullptr) {
      copy_weights(weights, begin, feature.count, block.weights);
    }
  }
}

// Rows and ids before a chunk of a block.
SHARDREC_DEVICE void set_chunk(const shardrec_cuda_written_block& block, int64_t chunk,
                               uint32_t rows, uint32_t ids) {
  if (block.chunk_rows == nullptr) return;
  block.chunk_rows[chunk] = rows;
  block.chunk_ids[chunk] = ids;
}

// Chunks of a sequence that its blocks hold whole: as many ids before each as items.
SHARDREC_DEVICE void write_chunks_of_sequence(const shardrec_cuda_routed_ids& feature,
                                              const Strip& strip) {
  const int64_t chunks = chunks_of(feature);
  for (int64_t c = strip.number * kWarp + lane_index(); c < chunks; c += feature.strips * kWarp) {
    const auto before = static_cast<uint32_t>(c * SHARDREC_CUDA_CHUNK);
    for (int32_t b = 0; b < feature.block_count; ++b) {
      set_chunk(feature.blocks[b], c, before, before);
    }
  }
}

// The bags of a strip, where blocks hold them whole.
SHARDREC_DEVICE void write_whole_bags(const shardrec_cuda_id_routing& job, int64_t number) {
  if (number >= job.strips) return;
  const Strip strip = strip_at(job, number);
  const shardrec_cuda_routed_ids& feature = job.features[strip.feature];
  if (feature.intervals != 0) return;
  uint64_t before = feature.strip_sums[strip.number] - feature.strip_sums[0];
  for (int half = 0; half < kStrip; half += kWarp) {
    const int64_t sample = strip.first_bag() + half + lane_index();
    const uint32_t length = length_of_bag(feature, sample);
    const uint64_t up_to = before + sum_of_lanes_up_to_this(bag_with_ids(length));
    const uint64_t here = up_to - bag_with_ids(length);
    for (int32_t b = 0; b < feature.block_count && sample < feature.bags; ++b) {
      const shardrec_cuda_written_block& block = feature.blocks[b];
      if (block.dense_lengths != nullptr) block.dense_lengths[sample] = length;
      if (block.sparse_lengths != nullptr && length != 0) {
        block.sparse_lengths[bags_of(here)] = {static_cast<uint32_t>(sample), length};
      }
      if (feature.sequence == 0 && sample % SHARDREC_CUDA_CHUNK == 0) {
        set_chunk(block, sample / SHARDREC_CUDA_CHUNK, bags_of(here), ids_of(here));
      }
    }
    before = __shfl_sync(kAllLanes, up_to, kWarp - 1);
  }
  if (feature.sequence != 0) write_chunks_of_sequence(feature, strip);
  if (strip.number + 1 != feature.strips) return;
  for (int32_t b = lane_index(); b < feature.block_count; b += kWarp) {
    const uint32_t rows = feature.sequence != 0 ? ids_of(before) : bags_of(before);
    set_chunk(feature.blocks[b], chunks_of(feature), rows, ids_of(before));
  }
}

// Features that every block holds as they are. Blocks of threads take the tiles of ids, those behind them the strips.
SHARDREC_KERNEL(4) write_whole_features(shardrec_cuda_id_routing job) {
  if (blockIdx.x >= job.tiles.count) {
    write_whole_bags(job, grid_warp_index() - job.tiles.count * kWarps);
    return;
  }
  const Tile tile = own_tile(job.tiles);
  const shardrec_cuda_routed_ids& feature = job.features[tile.list];
  with_integers(given_ids(job, feature), feature.ids_are_64, [&](const auto* ids) {
    copy_tile(feature, ids, given_weights(job, feature), tile.begin);
  });
}

// Rows and ids before a chunk are what the warp has written when it gets there.
SHARDREC_DEVICE void note_chunk(const shardrec_cuda_routed_ids& feature, const BlockPlace* places,
                                int64_t chunk) {
  for (int32_t b = lane_index(); b < feature.block_count; b += kWarp) {
    set_chunk(feature.blocks[b], chunk, feature.sequence != 0 ? places[b].ids : places[b].bags,
              places[b].ids);
  }
}

// Where the warp begins in the blocks. Dense lengths are counted up from 0.
SHARDREC_DEVICE void begin_blocks(const shardrec_cuda_routed_ids& feature, const Strip& strip,
                                  BlockPlace* places) {
  for (int32_t b = lane_index(); b < feature.block_count; b += kWarp) {
    const uint64_t before = feature.block_sums[b * feature.strips + strip.number];
    places[b] = {ids_of(before), bags_of(before), kNoSample};
  }
  for (int32_t b = 0; b < feature.block_count; ++b) {
    uint32_t* const lengths = feature.blocks[b].dense_lengths;
    if (lengths == nullptr) continue;
    for (int64_t bag = strip.first_bag() + lane_index();
         bag < feature.bags && bag < strip.first_bag() + kStrip; bag += kWarp) {
      lengths[bag] = 0;
    }
  }
  __syncwarp();
}

// The lane that leads a group adds it to the bag's length, which nobody but this warp writes.
SHARDREC_DEVICE void add_to_bag(const shardrec_cuda_written_block& block, const Placed& placed,
                                uint32_t sample) {
  if (block.sparse_lengths == nullptr) {
    block.dense_lengths[sample] += placed.group_ids;
  } else if (placed.begins_bag) {
    block.sparse_lengths[placed.bag] = {sample, placed.group_ids};
  } else {
    block.sparse_lengths[placed.bag].count += placed.group_ids;
  }
}

SHARDREC_KERNEL(4) write_strips(shardrec_cuda_id_routing job) {
  const int64_t number = grid_warp_index();
  if (number >= job.strips) return;
  const Strip strip = strip_at(job, number);
  const shardrec_cuda_routed_ids& feature = job.features[strip.feature];
  if (feature.intervals == 0) return;
  StripMemory& memory = shared<StripMemories>().of_warp[warp_index()];
  BlockPlace* const places = places_of(feature, strip, memory);
  begin_blocks(feature, strip, places);
  if (feature.sequence == 0 && strip.first_bag() % SHARDREC_CUDA_CHUNK == 0) {
    note_chunk(feature, places, strip.first_bag() / SHARDREC_CUDA_CHUNK);
  }
  walk_strip(
      feature, strip, given_ids(job, feature), 0, memory,
      [&](uint32_t chunk) { note_chunk(feature, places, chunk); },
      [&](const WalkedId& id) {
        const int64_t row = id.exists ? row_for(id.id, feature) : -1;
        const int32_t interval = row < 0 ? -1 : interval_of(feature, row);
        if (id.exists && feature.interval_of != nullptr) feature.interval_of[id.i] = interval;
        place_in_interval(feature, places, interval, id.sample,
                          [&](int32_t b, const Placed& placed) {
                            const shardrec_cuda_written_block& block = feature.blocks[b];
                            put_id(feature, block, placed.id, row - block.row);
                            if (block.weights != nullptr) {
                              block.weights[placed.id] = given_weights(job, feature)[id.i];
                            }
                            if (placed.leads) add_to_bag(block, placed, id.sample);
                          });
      });
  if (strip.number + 1 == feature.strips) note_chunk(feature, places, chunks_of(feature));
}

}  // namespace shardrec::compute::cuda
