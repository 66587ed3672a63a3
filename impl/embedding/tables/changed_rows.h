// Which rows of a rank's tables have changed, for several readers: a bit per row of each shard, and of each reader. One
// reader is the sync of replicas, whose bits are of cut tables alone: replicated ones are equal on all replicas. Others
// are marks (RowMark), which have those of all tables.
//
// Steps set the bits in the memory of the back end, where a device knows its rows (compute::TouchedRows::changed), the
// host those of rows that it writes. gather() moves the former to all readers. A row whose bit is set may be as before;
// one whose bit is not set is. A load sets none of the sync's: what it fills is equal on all replicas, and
// rows that differed before stay noted. It sets all of the marks'.
//
// Thread rule: the collection's. A mark may be let go of by any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "compute/backend.h"
#include "compute/booked_memory.h"
#include "compute/buffer.h"
#include "compute/row_bits.h"
#include "embedding/tables/layout.h"
#include "embedding/tables/shard.h"

namespace shardrec::embedding {

// Where the words of a shard are among those of all.
struct ShardWords {
  size_t first = 0;
  size_t count = 0;
};

// The rows that have changed since the mark was made: of all shards, the host's.
class RowMark {
 public:
  // As of the last ChangedRows::gather().
  std::span<const compute::RowWord> of(size_t shard) const {
    return words_.subspan(shards_[shard].first, shards_[shard].count);
  }

 private:
  friend class ChangedRows;
  RowMark(std::vector<ShardWords> shards, size_t words, compute::BookedBytes booked);

  std::vector<ShardWords> shards_;
  compute::Buffer memory_;
  std::span<compute::RowWord> words_;
};

class ChangedRows {
 public:
  // What begin() allocates of the host's memory: the host's bits, and the back end's where it is the host's too.
  static uint64_t host_bytes(const Layout& layout, bool backend_on_host);

  // From now on the sync's bits are kept; none is set. The host's are counted in `booked`, as those
  // of the back end are there. Throws OUT_OF_MEMORY.
  void begin(const Layout& layout, std::span<const Shard> shards, compute::Backend& backend,
             compute::BookedBytes booked);
  // From now on, and as long as the mark is there, its bits are kept; none is set. What operations have set before is
  // gathered: they are over. Throws OUT_OF_MEMORY.
  std::shared_ptr<const RowMark> mark(const Layout& layout, std::span<const Shard> shards,
                                      compute::Backend& backend,
                                      const compute::BookedBytes& booked);

  // Where operations set those of a shard; null: nobody keeps any.
  compute::RowWord* bits(size_t shard) noexcept;
  // Rows of a shard, counted from its first, that the host writes.
  void add(size_t shard, std::span<const int64_t> rows) noexcept;
  void add_range(size_t shard, int64_t first, int64_t count) noexcept;
  // Rows that a sync writes: the marks' alone.
  void add_synced(size_t shard, std::span<const int64_t> rows) noexcept;
  void add_synced_range(size_t shard, int64_t first, int64_t count) noexcept;
  // All rows: the marks' alone.
  void add_all_to_marks(std::span<const Shard> shards) noexcept;

  // Operations that set bits are over. Those of the back end given are then over too.
  void gather(compute::Backend& backend);
  // The sync's, as of the last gather(); none of a shard of which none are kept.
  std::span<const compute::RowWord> of(size_t shard) const {
    const ShardWords& own = shards_[shard];
    return own.first < host_words_.size() ? host_words_.subspan(own.first, own.count)
                                          : std::span<compute::RowWord>();
  }
  // Those of all shards side by side, each from a word of its own on: who knows of more rows that have changed sets
  // their bits.
  std::span<compute::RowWord> words() noexcept { return host_words_; }
  // Is no bit set behind a shard's last row?
  bool within_shards(std::span<const Shard> shards) const noexcept;
  void clear() noexcept;

 private:
  void lay_out(const Layout& layout, std::span<const Shard> shards);
  void grow(size_t words, compute::Backend& backend, const compute::BookedBytes& booked);
  // The words of a shard of each mark that is there.
  template <class Take>
  void for_each_mark(size_t shard, Take take) noexcept;
  bool any_mark() noexcept;
  compute::RowWord* operations_words() noexcept {
    return static_cast<compute::RowWord*>(static_cast<void*>(words_->data));
  }

  // Cut tables' words come first, replicated tables' behind them.
  std::vector<ShardWords> shards_;
  size_t cut_words_ = 0;
  size_t all_words_ = 0;
  std::unique_ptr<compute::Allocation> words_;  // the back end's; null: nobody has begun
  size_t operations_count_ = 0;                 // of these
  bool may_be_set_ = false;                     // since the last gather()
  std::optional<compute::Buffer> host_memory_;
  std::span<compute::RowWord> host_words_;  // the sync's
  std::optional<compute::Buffer> piece_memory_;
  std::span<compute::RowWord> piece_;  // of the words, on its way to the host or back
  std::vector<std::weak_ptr<RowMark>> marks_;
};

}  // namespace shardrec::embedding
