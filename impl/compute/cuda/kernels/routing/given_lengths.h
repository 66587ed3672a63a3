// The lengths of bags as the caller gives them, or offsets, checked and written as 32 bits each.
#pragma once

#include "compute/cuda/jobs/routing.h"
#include "compute/cuda/kernels/chained_scan.h"
#include "compute/cuda/kernels/checks.h"

namespace shardrec::compute::cuda {

template <class Integer>
SHARDREC_DEVICE void read_lengths(const shardrec_cuda_bag_lengths& feature, const Integer* list,
                                  int64_t begin, shardrec_cuda_checked_list& checked,
                                  uint32_t (&lengths)[kTileItems]) {
  Integer given[kTileItems];
  load_items_of_warp(list, begin, feature.bags, given);
  uint64_t sum = 0;
  FirstWrong wrong;
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t i = begin + item_of_warp(k);
    const int64_t length = given[k];
    const bool is_wrong = length < 0 || length > feature.most;
    if (is_wrong) wrong.see(item_of_warp(k));  // not behind the end, where lengths are 0
    lengths[k] = is_wrong ? 0 : static_cast<uint32_t>(length);
    sum += lengths[k];
    if (i < feature.bags) feature.out[i] = lengths[k];
  }
  add_to_sum(&checked.sum, sum);
  wrong.tell(&checked.wrong, begin);
}

template <class Integer>
SHARDREC_DEVICE void read_offsets(const shardrec_cuda_bag_lengths& feature, const Integer* list,
                                  int64_t begin, shardrec_cuda_checked_list& checked,
                                  uint32_t (&lengths)[kTileItems]) {
  Integer offsets[kTileItems];
  Integer next[kTileItems];
  load_items_of_warp(list, begin, feature.bags, offsets);
  load_items_of_warp(list + 1, begin, feature.bags, next);
  FirstWrong wrong;
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t i = begin + item_of_warp(k);
    if (next[k] < offsets[k]) wrong.see(item_of_warp(k));
    // Of offsets that fall somewhere, a difference can be any number.
    lengths[k] =
        static_cast<uint32_t>(static_cast<uint64_t>(next[k]) - static_cast<uint64_t>(offsets[k]));
    if (i < feature.bags) feature.out[i] = lengths[k];
  }
  wrong.tell(&checked.wrong, begin);
  if (begin == 0 && threadIdx.x == 0) {
    add_to(&checked.sum, static_cast<uint64_t>(list[feature.bags]));
  }
}

// The lengths of this thread's bags of a tile, 0 behind the last one. given: of the job.
SHARDREC_DEVICE void read_given_lengths(const shardrec_cuda_bag_lengths& feature, const void* given,
                                        int64_t begin, shardrec_cuda_checked_list& checked,
                                        uint32_t (&lengths)[kTileItems]) {
  with_integers(bytes_behind(given, feature.given_at), feature.given_64, [&](const auto* list) {
    if (feature.are_offsets != 0) {
      read_offsets(feature, list, begin, checked, lengths);
    } else {
      read_lengths(feature, list, begin, checked, lengths);
    }
  });
}

}  // namespace shardrec::compute::cuda
