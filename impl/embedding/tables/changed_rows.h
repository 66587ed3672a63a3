// Which rows of a rank's tables have changed since the last clear(): a bit per row of each shard. Of replicated tables,
// which are equal on all replicas, none are kept.
//
// Steps set the bits in the memory of the back end, where a device knows its rows (compute::TouchedRows::changed), the
// host those of rows that it writes. gather() moves the former to the latter. A row whose bit is set may be as before;
// one whose bit is not set is. A load sets none: what it fills is equal on all replicas, the reader of these bits, and
// rows that differed before stay noted.
//
// Thread rule: the collection's.
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

class ChangedRows {
 public:
  // What begin() allocates of the host's memory: the host's bits, and the back end's where it is the host's too.
  static uint64_t host_bytes(const Layout& layout, bool backend_on_host);

  // From now on bits are kept; none is set. Before it nobody keeps any. The host's are counted in `booked`, as those
  // of the back end are there. Throws OUT_OF_MEMORY.
  void begin(const Layout& layout, std::span<const Shard> shards, compute::Backend& backend,
             compute::BookedBytes booked);

  // Where operations set those of a shard; null: nobody keeps any.
  compute::RowWord* bits(size_t shard) noexcept {
    return keeps(shard) ? operations_words() + first_word_[shard] : nullptr;
  }
  // Rows of a shard, counted from its first, that the host writes.
  void add(size_t shard, std::span<const int64_t> rows) noexcept;
  void add_range(size_t shard, int64_t first, int64_t count) noexcept;

  // Operations that set bits are over. Those of the back end given are then over too.
  void gather(compute::Backend& backend);
  // The host's, as of the last gather(); none of a shard of which none are kept.
  std::span<const compute::RowWord> of(size_t shard) const {
    return host_words_.subspan(first_word_[shard], first_word_[shard + 1] - first_word_[shard]);
  }
  // Those of all shards side by side, each from a word of its own on: who knows of more rows that have changed sets
  // their bits.
  std::span<compute::RowWord> words() noexcept { return host_words_; }
  // Is no bit set behind a shard's last row?
  bool within_shards(std::span<const Shard> shards) const noexcept;
  void clear() noexcept;

 private:
  bool keeps(size_t shard) const noexcept {
    return words_ != nullptr && first_word_[shard] != first_word_[shard + 1];
  }
  compute::RowWord* operations_words() noexcept {
    return static_cast<compute::RowWord*>(static_cast<void*>(words_->data));
  }

  std::vector<size_t> first_word_;  // by shard, and of all
  std::unique_ptr<compute::Allocation> words_;
  std::optional<compute::Buffer> host_memory_;
  std::span<compute::RowWord> host_words_;
  std::span<compute::RowWord> piece_;  // of the words, on its way to the host or back
};

}  // namespace shardrec::embedding
