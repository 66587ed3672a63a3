// Lookups that need no exchange: where the sums of a box are outputs as they are, and its owner
// asks for them itself, they are written straight into the caller's output.
//
// A block is direct when its part belongs to this rank and no other part adds to its columns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "compute/backend.h"
#include "compute/lookup_operations.h"
#include "embedding/batch/output_view.h"
#include "embedding/exchange/inbox.h"
#include "embedding/exchange/route.h"
#include "embedding/tables/layout.h"
#include "embedding/tables/shard.h"

namespace shardrec::embedding {

class DirectLookup {
 public:
  explicit DirectLookup(const Layout& layout);

  // allowed: else no block of the batch is direct.
  void open(bool allowed) { open_ = allowed; }

  // By block of this rank (Layout::blocks_of): is it direct?
  std::span<const uint8_t> blocks() const { return open_ ? direct_ : none_; }

  // Are all blocks, of any batch that open() allows?
  bool all() const { return std::find(direct_.begin(), direct_.end(), 0) == direct_.end(); }

  // The same as compute() of a batch that is pending (InputExchange): nothing is written if it is refused.
  void compute_pending(const RoutedBatch& routed, std::span<const Shard> shards, int32_t output,
                       compute::Backend& backend, const OutputView& out, size_t bytes);
  // Looks up the direct blocks of an output of so many bytes.
  void compute(const RoutedBatch& routed, const Inbox& inbox, std::span<const Shard> shards,
               int32_t output, compute::Backend& backend, const OutputView& out, size_t bytes);

 private:
  // Columns of a direct block that lie side by side in the output.
  struct Piece {
    size_t block = 0;
    size_t shard = 0;
    int32_t feature = 0;
    ColumnPiece columns;
  };
  // What is read of a piece's bags.
  struct Read {
    compute::Ids ids;
    const float* weights = nullptr;
    const uint32_t* chunk_ids = nullptr;
    const uint32_t* good = nullptr;
  };
  template <class ReadOf>
  void look_up(const RoutedBatch& routed, std::span<const Shard> shards, int32_t output,
               compute::Backend& backend, const OutputView& out, size_t bytes, ReadOf read_of);
  compute::BagOutputs outputs_of(const Piece& piece, const Read& read, const RoutedBatch& routed,
                                 std::span<const Shard> shards, const OutputView& out) const;

  const Layout& layout_;
  bool open_ = true;
  std::vector<uint8_t> direct_;
  std::vector<uint8_t> none_;
  std::vector<Piece> pieces_;
  std::vector<compute::BagOutputs> outputs_;  // of an output
};

}  // namespace shardrec::embedding
