// Blocks of ids that arrived (jobs/received.h): a thread for some lengths, or codes, of a block.
#pragma once

#include "compute/cuda/jobs/routing.h"
#include "compute/cuda/kernels/checks.h"

namespace shardrec::compute::cuda {

SHARDREC_DEVICE void check_dense_tile(const shardrec_cuda_bags& block, int64_t begin,
                                      shardrec_cuda_bag_totals& totals) {
  uint32_t lengths[kTileItems];
  load_items(block.dense_lengths, begin, block.samples, lengths);
  uint64_t ids = 0;
  uint64_t bags = 0;
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    ids += lengths[k];
    bags += lengths[k] != 0 ? 1 : 0;
  }
  add_to_sum(&totals.ids, ids);
  add_to_sum(&totals.bags, bags);
}

SHARDREC_DEVICE void check_sparse_tile(const shardrec_cuda_bags& block, int64_t begin,
                                       shardrec_cuda_bag_totals& totals) {
  uint64_t ids = 0;
  uint64_t unordered = 0;
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t i = begin + item_of_tile(k);
    if (i >= block.bags) continue;
    const shardrec_cuda_sparse_length entry = block.sparse_lengths[i];
    const int64_t before = i == 0 ? -1 : int64_t{block.sparse_lengths[i - 1].sample};
    const bool ordered = entry.sample < block.samples && entry.sample > before && entry.count != 0;
    unordered += ordered ? 0 : 1;
    ids += entry.count;
  }
  add_to_sum(&totals.ids, ids);
  add_to_sum(&totals.unordered, unordered);
}

SHARDREC_KERNEL(8) check_bags_of_blocks(shardrec_cuda_bag_check job) {
  const Tile tile = own_tile(job.tiles);
  const shardrec_cuda_bags& block = job.blocks[tile.list];
  if (block.sparse_lengths != nullptr) {
    check_sparse_tile(block, tile.begin, job.totals[tile.list]);
  } else {
    check_dense_tile(block, tile.begin, job.totals[tile.list]);
  }
}

template <class Code, class Id>
SHARDREC_DEVICE void expand_tile(const shardrec_cuda_coded_ids& block, const Id* unique_ids,
                                 int64_t begin, uint64_t* first_wrong) {
  Code codes[kTileItems];
  load_items(static_cast<const Code*>(block.codes), begin, block.count, codes);
  Id ids[kTileItems];
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    ids[k] = codes[k] < block.unique ? unique_ids[codes[k]] : Id{0};
  }
  Id* const out = static_cast<Id*>(block.out);
  FirstWrong wrong;
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t i = begin + item_of_tile(k);
    if (i >= block.count) continue;
    if (codes[k] >= block.unique) wrong.see(item_of_tile(k));
    out[i] = ids[k];
  }
  wrong.tell(first_wrong, begin);
}

SHARDREC_KERNEL(4) expand_ids_of_blocks(shardrec_cuda_id_expansion job) {
  const Tile tile = own_tile(job.tiles);
  const shardrec_cuda_coded_ids& block = job.blocks[tile.list];
  uint64_t* const wrong = job.wrong + tile.list;
  with_integers(block.unique_ids, block.ids_are_64, [&](const auto* unique_ids) {
    if (block.code_bytes == 1) {
      expand_tile<uint8_t>(block, unique_ids, tile.begin, wrong);
    } else if (block.code_bytes == 2) {
      expand_tile<uint16_t>(block, unique_ids, tile.begin, wrong);
    } else {
      expand_tile<uint32_t>(block, unique_ids, tile.begin, wrong);
    }
  });
}

}  // namespace shardrec::compute::cuda
