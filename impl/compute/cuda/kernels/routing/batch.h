// The caller's batch (jobs/batch.h): a thread for some lengths, or samples, of a feature.
#pragma once

#include "compute/cuda/jobs/routing.h"
#include "compute/cuda/kernels/checks.h"

namespace shardrec::compute::cuda {

template <class Integer>
SHARDREC_DEVICE void read_lengths_of_tile(const shardrec_cuda_bag_lengths& feature,
                                          const Integer* given, int64_t begin,
                                          shardrec_cuda_checked_list& checked) {
  Integer lengths[kTileItems];
  load_items(given, begin, feature.bags, lengths);
  uint64_t sum = 0;
  FirstWrong wrong;
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t i = begin + item_of_tile(k);
    const int64_t length = lengths[k];
    if (i >= feature.bags) continue;
    if (length < 0 || length > feature.most) {
      wrong.see(item_of_tile(k));
    } else {
      feature.out[i] = static_cast<uint32_t>(length);
      sum += static_cast<uint64_t>(length);
    }
  }
  add_to_sum(&checked.sum, sum);
  wrong.tell(&checked.wrong, begin);
}

template <class Integer>
SHARDREC_DEVICE void read_offsets_of_tile(const shardrec_cuda_bag_lengths& feature,
                                          const Integer* given, int64_t begin,
                                          shardrec_cuda_checked_list& checked) {
  Integer offsets[kTileItems];
  Integer next[kTileItems];
  load_items(given, begin, feature.bags, offsets);
  load_items(given + 1, begin, feature.bags, next);
  FirstWrong wrong;
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t i = begin + item_of_tile(k);
    if (i >= feature.bags) continue;
    if (next[k] < offsets[k]) wrong.see(item_of_tile(k));
    // Of offsets that fall somewhere, a difference can be any number.
    feature.out[i] =
        static_cast<uint32_t>(static_cast<uint64_t>(next[k]) - static_cast<uint64_t>(offsets[k]));
  }
  wrong.tell(&checked.wrong, begin);
  if (begin == 0 && threadIdx.x == 0) checked.sum = static_cast<uint64_t>(given[feature.bags]);
}

SHARDREC_KERNEL(3) read_lengths_of_features(shardrec_cuda_length_reading job) {
  const Tile tile = own_tile(job.tiles);
  const shardrec_cuda_bag_lengths& feature = job.features[tile.list];
  shardrec_cuda_checked_list& checked = job.checked[tile.list];
  with_integers(feature.given, feature.given_64, [&](const auto* given) {
    if (feature.are_offsets != 0) {
      read_offsets_of_tile(feature, given, tile.begin, checked);
    } else {
      read_lengths_of_tile(feature, given, tile.begin, checked);
    }
  });
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
