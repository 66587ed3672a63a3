// A batch all ids of which stay on this rank. Operations read its lengths, check its ids and copy them; nobody waits for
// what they find until finish(). Lookups may be enqueued behind them at once: they are told of a word that says by then
// whether the batch is good, and look nothing up where it is not.
//
// Thread rule: that of the back end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "compute/routing_operations.h"

namespace shardrec::compute {

// Where the chunks of a feature begin, [chunks + 1] each.
struct LocalChunks {
  uint32_t* rows = nullptr;       // as SentBags::chunk_rows
  uint32_t* ids = nullptr;        // as SentBags::chunk_ids
  uint32_t* batch_ids = nullptr;  // ids of the whole batch before each chunk
};

// Where the batch is copied to, in the memory of the back end, in the order of its features.
struct LocalIds {
  void* ids = nullptr;       // [ids of the batch]: int64 where the features write so, else int32
  float* weights = nullptr;  // likewise; null: not wanted
  std::span<const LocalChunks> chunks;  // by feature
};

class LocalBatch {
 public:
  virtual ~LocalBatch() = default;
  LocalBatch(const LocalBatch&) = delete;
  LocalBatch& operator=(const LocalBatch&) = delete;

  // features: pooled, without intervals, their first and count not known yet; none drops ids, and all write ids of one
  // width. blocks: of all features. What the caller gave is read by the operations that are enqueued here, and by none
  // behind them.
  virtual void begin(const BatchLengths& lengths, std::span<const RoutedIds> features,
                     size_t blocks, const LocalIds& to) = 0;
  // In the memory of the back end, for operations behind begin(): 0 where the batch is not good.
  virtual const uint32_t* good() const = 0;
  // Waits for what begin() has found: results, and arguments, are those of RoutingOperations::count_batch().
  virtual bool finish(const BatchLengths& lengths, std::span<RoutedIds> features,
                      std::span<CheckedIds> checked, std::span<BlockCount> counts) = 0;

 protected:
  LocalBatch() = default;
};

}  // namespace shardrec::compute
