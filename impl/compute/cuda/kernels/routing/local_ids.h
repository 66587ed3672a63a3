// A batch all ids of which stay on this rank (jobs/routing.h): ids are checked and copied in one go, behind the kernel
// that has read its lengths.
#pragma once

#include "compute/cuda/kernels/chained_scan.h"
#include "compute/cuda/kernels/routing/routing.h"

namespace shardrec::compute::cuda {

// What the kernel has in shared memory.
struct LocalMemory {
  uint32_t is_last;
};

// The row that is looked up for an id: of one that is refused none is.
SHARDREC_DEVICE int64_t local_row(int64_t id, const shardrec_cuda_routed_ids& feature) {
  return in_range(id, feature.rows) ? id : 0;
}

template <class Id>
SHARDREC_DEVICE void copy_tile_of_batch(const shardrec_cuda_id_routing& job,
                                        const shardrec_cuda_local_ids& to, const Id* list,
                                        int64_t begin) {
  const bool writes_64 = job.features->writes_64 != 0;
  check_tile_of_batch(job, list, begin,
                      [&](int64_t i, Id id, const shardrec_cuda_routed_ids& feature) {
                        const int64_t row = local_row(id, feature);
                        if (writes_64) {
                          static_cast<int64_t*>(to.ids)[i] = row;
                        } else {
                          static_cast<int32_t*>(to.ids)[i] = static_cast<int32_t>(row);
                        }
                      });
  if (to.weights != nullptr) {
    copy_weights(given_weights(job, *job.features), begin, job.all_ids, to.weights);
  }
}

SHARDREC_DEVICE void put_chunk(const shardrec_cuda_local_chunks& chunks, int64_t chunk,
                               uint64_t before, uint32_t first_id) {
  chunks.rows[chunk] = bags_of(before);
  chunks.ids[chunk] = ids_of(before);
  chunks.batch_ids[chunk] = first_id + ids_of(before);
}

// The chunk that begins with a strip, and the end of the feature behind its last one.
SHARDREC_DEVICE void write_chunks_at(const shardrec_cuda_id_routing& job,
                                     const shardrec_cuda_local_ids& to, int64_t number) {
  static_assert(SHARDREC_CUDA_CHUNK % kStrip == 0);
  constexpr int64_t kStripsOfChunk = SHARDREC_CUDA_CHUNK / kStrip;
  const auto f =
      static_cast<int32_t>(count_below(job.first_strip + 1, job.feature_count - 1, number + 1));
  const shardrec_cuda_routed_ids& feature = job.features[f];
  const shardrec_cuda_local_chunks& chunks = to.chunks[f];
  const int64_t strip = number - job.first_strip[f];
  const int64_t count = chunks_of(feature);
  const uint32_t first_id = first_id_of(job, f);
  if (strip % kStripsOfChunk == 0 && strip / kStripsOfChunk < count) {
    put_chunk(chunks, strip / kStripsOfChunk, feature.strip_sums[strip] - feature.strip_sums[0],
              first_id);
  }
  if (strip + 1 == feature.strips) {
    put_chunk(chunks, count, feature.strip_sums[feature.strips] - feature.strip_sums[0], first_id);
  }
}

// Of the lists of a feature, what was found wrong. Returns whether anything was.
SHARDREC_DEVICE bool note_wrong(const shardrec_cuda_id_routing& job,
                                const shardrec_cuda_local_ids& to, int32_t f) {
  const uint64_t wrong_id = load_relaxed(&job.checked[f].wrong);
  const uint64_t wrong_length = load_relaxed(&job.lengths[f].wrong);
  shardrec_cuda_wrong_values& values = to.wrong[f];
  if (wrong_id != 0) {
    const auto at = static_cast<int64_t>(~wrong_id) + first_id_of(job, f);
    with_integers(given_ids(job, *job.features), job.features->ids_are_64,
                  [&](const auto* ids) { values.id = ids[at]; });
  }
  if (wrong_length != 0) {
    const shardrec_cuda_bag_lengths& given = job.given[f];
    const auto at = static_cast<int64_t>(~wrong_length);
    with_integers(bytes_behind(job.given_lengths, given.given_at), given.given_64,
                  [&](const auto* lengths) {
                    values.before = lengths[at];
                    values.length = lengths[given.are_offsets != 0 ? at + 1 : at];
                  });
  }
  return wrong_id != 0 || wrong_length != 0;
}

// By one warp of the block that ends last.
SHARDREC_DEVICE void tell_good(const shardrec_cuda_id_routing& job,
                               const shardrec_cuda_local_ids& to) {
  bool wrong = !has_good_lengths(job);
  for (int32_t f = lane_index(); f < job.feature_count; f += kWarp) {
    wrong = note_wrong(job, to, f) || wrong;
  }
  const bool any_wrong = __any_sync(kAllLanes, wrong) != 0;
  if (lane_index() == 0) *to.good = any_wrong ? 0U : 1U;
}

// Blocks of threads take the tiles of ids, those behind them the chunks of features and the totals of blocks.
SHARDREC_KERNEL(4)
check_and_copy_ids(shardrec_cuda_id_routing job, shardrec_cuda_local_ids to) {
  if (has_good_lengths(job)) {
    if (blockIdx.x < job.tiles.count) {
      const Tile tile = own_tile(job.tiles);
      with_integers(given_ids(job, *job.features), job.features->ids_are_64,
                    [&](const auto* ids) { copy_tile_of_batch(job, to, ids, tile.begin); });
    } else {
      const int64_t number = (blockIdx.x - job.tiles.count) * kThreads + threadIdx.x;
      if (number < job.strips) write_chunks_at(job, to, number);
      if (number < job.block_count) write_total(job, number);
    }
  }
  __syncthreads();
  auto& memory = shared<LocalMemory>();
  const bool is_last = is_last_of_blocks(to.ended, memory.is_last, gridDim.x);
  if (is_last && warp_index() == 0) tell_good(job, to);
}

}  // namespace shardrec::compute::cuda
