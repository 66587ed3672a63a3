// The caller's batch (jobs/routing.h): a thread for some lengths, or samples, of a feature.
#pragma once

#include "compute/cuda/kernels/routing/given_lengths.h"

namespace shardrec::compute::cuda {

SHARDREC_KERNEL(3) read_lengths_of_features(shardrec_cuda_length_reading job) {
  const Tile tile = own_tile(job.tiles);
  uint32_t lengths[kTileItems];
  read_given_lengths(job.features[tile.list], job.given, tile.begin, job.checked[tile.list],
                     lengths);
}

template <class Integer>
SHARDREC_DEVICE void read_bags_of_tile(const shardrec_cuda_sample_sorting& job, const Tile& tile,
                                       const Integer* bag_of) {
  const shardrec_cuda_samples_by_bag& feature = job.features[tile.list];
  Integer bags[kTileItems];
  load_items(bag_of, tile.begin, feature.count, bags);
  FirstWrong wrong;
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t sample = tile.begin + item_of_tile(k);
    if (sample >= feature.count) continue;
    int64_t bag = bags[k];
    if (bag < 0 || bag >= feature.bags) {
      wrong.see(item_of_tile(k));
      bag = 0;
    }
    job.keys[feature.first_sample + sample] = feature.first_bag + static_cast<uint64_t>(bag);
    job.values[feature.first_sample + sample] = static_cast<uint32_t>(sample);
  }
  wrong.tell(&job.checked[tile.list].wrong, tile.begin);
}

// Keys that keep the samples of each feature together, in the order of its bags.
SHARDREC_KERNEL(4) read_bags_of_samples(shardrec_cuda_sample_sorting job) {
  const Tile tile = own_tile(job.sample_tiles);
  const shardrec_cuda_samples_by_bag& feature = job.features[tile.list];
  with_integers(feature.bag_of, feature.bag_of_64,
                [&](const auto* bag_of) { read_bags_of_tile(job, tile, bag_of); });
}

SHARDREC_KERNEL(8) write_sorted_samples(shardrec_cuda_sample_sorting job) {
  const Tile tile = own_tile(job.list_tiles);
  const shardrec_cuda_samples_by_bag& feature = job.features[tile.list];
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t i = tile.begin + item_of_tile(k);
    if (i < feature.count) feature.samples[i] = job.sorted_values[feature.first_sample + i];
    if (i <= feature.bags) {
      feature.starts[i] =
          static_cast<uint32_t>(count_below(job.sorted_keys + feature.first_sample, feature.count,
                                            feature.first_bag + static_cast<uint64_t>(i)));
    }
  }
}

}  // namespace shardrec::compute::cuda
