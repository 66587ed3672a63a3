// A rank's tables as they are at one moment, for somebody who writes them down while steps go on.
//
// Copy on write: who is about to change rows says which (RowChange), and those that the reader has not
// come to yet are copied first. A row is copied at most once, and copies are freed as soon as the reader
// has come past them. Where the host does not reach the tables, all of them are copied at once.
// Where a copy cannot be had the snapshot has failed: the reader hears OUT_OF_MEMORY, the step goes on.
//
// Thread rule: the thread of the collection's makes it and changes rows; one other thread may read; stop(),
// end() and over() any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "compute/backend.h"
#include "compute/booked_memory.h"
#include "compute/buffer.h"
#include "compute/row_bits.h"
#include "core/error.h"
#include "embedding/tables/copy_room.h"
#include "embedding/tables/layout.h"
#include "embedding/tables/shard.h"
#include "embedding/tables/stored_pieces.h"

namespace shardrec::embedding {

// What a snapshot has of a rank's tables.
struct SnapshotOf {
  bool none = false;   // nothing: others write them down
  bool states = true;  // of the optimizers; else weights alone
  // By shard: the rows whose bits are set, alone. Empty: all rows.
  std::vector<std::span<const compute::RowWord>> listed = {};
};

class Snapshot {
 public:
  // Of what stored_pieces() has for kSave, as far as `of` says. The shards, and the bits of rows, outlive end().
  // Copies are counted in `booked`. Throws OUT_OF_MEMORY.
  Snapshot(const Layout& layout, std::span<Shard> shards, compute::Backend& backend,
           compute::BookedBytes booked, const SnapshotOf& of = {});
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  // Bytes of the host's memory that the making of one takes.
  static uint64_t bytes_to_make(const Layout& layout, std::span<Shard> shards,
                                compute::Backend& backend, const SnapshotOf& of = {});

  // Rows [first, first + rows) of the piece of that number, as they were, one behind the other. Pieces are
  // read in their order, each from its first row to its last, once. Throws OUT_OF_MEMORY where a copy could
  // not be had, CANCELLED after stop() and end().
  void read(size_t piece, int64_t first, int64_t rows, std::byte* to);
  // The same of a snapshot of listed rows: some of them, ascending, counted from the piece's first; all in their order.
  void read_listed(size_t piece, std::span<const int64_t> rows, std::byte* to);

  // Nobody reads any more: frees the copies, and makes no more. end(): and there is no snapshot any more.
  void stop() noexcept;
  void end() noexcept;
  bool over() const noexcept { return over_.load(std::memory_order_acquire); }

 private:
  friend class RowChange;

  // Rows of a sheet that were copied at once, ascending, side by side.
  struct Copies {
    std::span<const int64_t> rows;
    const std::byte* data;
  };
  struct SheetState {
    Sheet sheet;
    size_t unread = 0;   // pieces
    int64_t passed = 0;  // the reader has had its rows below
    std::vector<Copies> copies;
    CopyRoom::Share room;  // theirs
  };
  struct ShardState {
    int64_t rows = 0;  // up to the last one that is read
    std::vector<SheetState> sheets;
    std::vector<uint64_t> copied;            // a bit per row: it was copied, or is not read
    std::vector<std::vector<int64_t>> kept;  // rows that were copied at once

    // No sheet needs rows below.
    int64_t passed() const;
  };
  struct Piece {
    StoredPiece stored;
    size_t row_bytes = 0;
    CopyRoom::Block copy;  // where the host does not reach the tables
    size_t rows_read = 0;  // of the copy of listed rows
  };

  void list_pieces(const Layout& layout, std::span<Shard> shards, const SnapshotOf& of);
  void copy_all(compute::Backend& backend);
  void copy_listed(compute::Backend& backend, const SnapshotOf& of);
  void read_some(const Piece& piece, int64_t first, int64_t rows, std::byte* to) const;
  void read_some_listed(Piece& piece, std::span<const int64_t> rows, std::byte* to) const;
  void pass(const Piece& piece, int64_t end);
  // Before rows of a shard change; mutex_ is held.
  void keep(size_t shard, std::span<const int64_t> rows) noexcept;
  void keep_range(size_t shard, int64_t first, int64_t count) noexcept;
  template <class RowAt>
  void keep_rows(ShardState& shard, int64_t count, RowAt row_at) noexcept;
  void keep_wanted(ShardState& shard);
  void copy_rows(const Sheet& sheet, std::span<const int64_t> rows, std::byte* to);
  // Nobody reads them any more.
  void free(SheetState& sheet) noexcept;
  void free(ShardState& shard) noexcept;
  void fail(shardrec_status status, const char* what, const char* reason) noexcept;

  compute::Backend* const backend_;
  const bool copied_whole_;
  CopyRoom room_;
  std::vector<Piece> pieces_;
  std::mutex mutex_;  // held while rows change and while they are read; guards the rest
  std::vector<ShardState> shards_;
  std::vector<int64_t> wanted_;
  std::optional<core::Error> failure_;
  std::atomic<bool> over_{false};
};

// A collection's snapshot, while there is one. Thread rule: the collection's thread.
class SnapshotPlace {
 public:
  // Null: there is none, or it is over.
  Snapshot* current() noexcept {
    if (snapshot_ == nullptr) return nullptr;
    if (snapshot_->over()) snapshot_.reset();
    return snapshot_.get();
  }
  void put(std::shared_ptr<Snapshot> snapshot) noexcept { snapshot_ = std::move(snapshot); }

 private:
  std::shared_ptr<Snapshot> snapshot_;
};

// Rows are about to change, and do so before this is gone. It comes before the first change, and keep()
// before the changes of the rows that it names; nobody reads a snapshot meanwhile.
class RowChange {
 public:
  explicit RowChange(SnapshotPlace& place) noexcept : snapshot_(place.current()) {
    if (snapshot_ == nullptr) return;
    if (snapshot_->copied_whole_) {
      snapshot_ = nullptr;
    } else {
      snapshot_->mutex_.lock();
    }
  }
  ~RowChange() {
    if (snapshot_ != nullptr) snapshot_->mutex_.unlock();
  }
  RowChange(const RowChange&) = delete;
  RowChange& operator=(const RowChange&) = delete;

  // Is there anything to keep rows for?
  explicit operator bool() const noexcept { return snapshot_ != nullptr; }
  // Rows of a shard, counted from its first.
  void keep(size_t shard, std::span<const int64_t> rows) const noexcept {
    if (snapshot_ != nullptr) snapshot_->keep(shard, rows);
  }
  void keep_range(size_t shard, int64_t first, int64_t count) const noexcept {
    if (snapshot_ != nullptr) snapshot_->keep_range(shard, first, count);
  }

 private:
  Snapshot* snapshot_;
};

}  // namespace shardrec::embedding
