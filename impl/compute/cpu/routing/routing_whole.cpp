// Routing of features every block of which holds all their ids.
#include <algorithm>
#include <cstring>

#include "compute/cpu/routing/routing.h"
#include "compute/cpu/routing/routing_ids.h"

namespace shardrec::compute::cpu {
namespace {

template <class WireId, class Id>
void copy_ids(const RoutedIds& feature, const Id* ids, int64_t out_of_range, WireId* out) {
  if (out_of_range == 0) {
    for (int64_t i = 0; i < feature.count; ++i) out[i] = static_cast<WireId>(ids[i]);
  } else {
    for (int64_t i = 0; i < feature.count; ++i) {
      out[i] = static_cast<WireId>(row_for(ids[i], feature.rows, feature.policy));
    }
  }
}

void write_bags(const RoutedIds& feature, const BlockSections& block) {
  const uint32_t* const lengths = feature.lengths;
  const int64_t chunks = feature.chunks();
  if (block.dense_lengths != nullptr) {
    std::copy_n(lengths, feature.bags, block.dense_lengths);
  }
  int64_t bags = 0;
  int64_t ids_before = 0;
  for (int64_t sample = 0; sample < feature.bags; ++sample) {
    if (!feature.sequence && sample % kChunk == 0) {
      block.chunk_rows[sample / kChunk] = static_cast<uint32_t>(bags);
      block.chunk_ids[sample / kChunk] = static_cast<uint32_t>(ids_before);
    }
    const uint32_t length = lengths[sample];
    if (length == 0) continue;
    ids_before += length;
    if (block.sparse_lengths != nullptr) {
      block.sparse_lengths[bags] = {static_cast<uint32_t>(sample), length};
    }
    ++bags;
  }
  if (feature.sequence) {
    for (int64_t c = 0; c < chunks; ++c) {
      block.chunk_rows[c] = static_cast<uint32_t>(c * kChunk);
      block.chunk_ids[c] = block.chunk_rows[c];
    }
  }
  block.chunk_ids[chunks] = static_cast<uint32_t>(feature.count);
  block.chunk_rows[chunks] = static_cast<uint32_t>(feature.sequence ? feature.count : bags);
}

}  // namespace

CheckedIds count_whole(const RoutedIds& feature, std::span<BlockCount> counts) {
  int64_t bad = 0;
  if (!writes_in_pieces(feature)) {
    bad = with_ids(feature, [&](const auto* ids) {
      int64_t outside = 0;
      for (int64_t i = 0; i < feature.count; ++i) outside += in_range(ids[i], feature.rows) ? 0 : 1;
      return outside;
    });
    if (bad != 0 && feature.policy == SHARDREC_OUT_OF_RANGE_ERROR) {
      return {.wrong = first_wrong(feature), .out_of_range = 0};
    }
  }
  int64_t bags = 0;
  for (int64_t sample = 0; sample < feature.bags; ++sample) bags += feature.lengths[sample] != 0;
  const BlockCount all{static_cast<uint32_t>(feature.count), static_cast<uint32_t>(bags)};
  for (const uint32_t block : feature.blocks) counts[block] = all;
  return {.wrong = {}, .out_of_range = bad};
}

bool narrow_ids(const RoutedIds& feature, int64_t first, int64_t last, const WrittenBlocks& blocks,
                const Kernels& kernels) {
  const auto* ids = static_cast<const int64_t*>(feature.ids.data) + feature.first + first;
  const int64_t count = last - first;
  const int32_t* written = nullptr;
  bool good = true;
  for (const uint32_t block : feature.blocks) {
    int32_t* const out = static_cast<int32_t*>(blocks[block].ids) + first;
    if (written == nullptr) {
      good = kernels.narrow_ids(ids, feature.rows, out, count);
      written = out;
    } else {
      std::memcpy(out, written, static_cast<size_t>(count) * sizeof(int32_t));
    }
  }
  return good;
}

void write_whole(const RoutedIds& feature, bool with_ids, int64_t out_of_range,
                 const WrittenBlocks& blocks) {
  for (const uint32_t b : feature.blocks) {
    const BlockSections& block = blocks[b];
    if (with_ids) {
      cpu::with_ids(feature, [&](const auto* ids) {
        feature.writes_64 ? copy_ids(feature, ids, out_of_range, static_cast<int64_t*>(block.ids))
                          : copy_ids(feature, ids, out_of_range, static_cast<int32_t*>(block.ids));
      });
    }
    if (block.weights != nullptr && feature.count != 0) {
      std::memcpy(block.weights, feature.weights + feature.first,
                  static_cast<size_t>(feature.count) * sizeof(float));
    }
    write_bags(feature, block);
  }
}

}  // namespace shardrec::compute::cpu
