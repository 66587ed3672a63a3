#include "embedding/tables/snapshot.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <utility>

#include "core/memory.h"

namespace shardrec::embedding {
namespace {

// A step waits for at most so many bytes that are being read.
constexpr size_t kBytesAtOnce = size_t{256} << 10;

size_t bitmap_words(int64_t rows) { return static_cast<size_t>((rows + 63) / 64); }

bool is_read(const StoredPiece& piece, const SnapshotOf& of) {
  return of.states || piece.part == SHARDREC_TABLE_WEIGHTS;
}

// Of the piece, those that are read.
int64_t rows_of(const StoredPiece& piece, const SnapshotOf& of) {
  return of.listed.empty() ? piece.cells.rows : compute::count_row_bits(of.listed[piece.shard]);
}

// Behind the last row whose bit is set.
int64_t end_of_listed(std::span<const compute::RowWord> bits) {
  for (size_t w = bits.size(); w-- > 0;) {
    if (bits[w] != 0) {
      return static_cast<int64_t>(w) * compute::kRowsOfAWord + std::bit_width(bits[w]);
    }
  }
  return 0;
}

}  // namespace

Snapshot::Snapshot(const Layout& layout, std::span<Shard> shards, compute::Backend& backend,
                   compute::BookedBytes booked, const SnapshotOf& of)
    : backend_(&backend),
      copied_whole_(!backend.host_reaches_memory()),
      room_(std::move(booked)),
      shards_(shards.size()) {
  if (of.none) return;
  list_pieces(layout, shards, of);
  if (copied_whole_) {
    of.listed.empty() ? copy_all(backend) : copy_listed(backend, of);
    return;
  }
  for (size_t s = 0; s < shards.size(); ++s) {
    ShardState& shard = shards_[s];
    for (SheetState& sheet : shard.sheets) {
      if (sheet.unread == 0) sheet.passed = shard.rows;  // others write it down
    }
    if (shard.passed() == shard.rows) continue;
    if (of.listed.empty()) {
      shard.copied.resize(bitmap_words(shard.rows));
      continue;
    }
    shard.copied.assign(bitmap_words(shards[s].rows()), ~uint64_t{0});
    for (size_t w = 0; w < of.listed[s].size(); ++w) {
      shard.copied[w / 2] &= ~(uint64_t{of.listed[s][w]} << (w % 2 * compute::kRowsOfAWord));
    }
  }
}

void Snapshot::list_pieces(const Layout& layout, std::span<Shard> shards, const SnapshotOf& of) {
  for (const StoredPiece& stored : stored_pieces(layout, shards, PieceUse::kSave)) {
    if (!is_read(stored, of)) continue;
    pieces_.push_back({.stored = stored, .row_bytes = stored.row_bytes(), .copy = nullptr});
  }
  if (copied_whole_) return;
  for (size_t s = 0; s < shards.size(); ++s) {
    shards_[s].rows = of.listed.empty() ? shards[s].rows() : end_of_listed(of.listed[s]);
    for (const Sheet& sheet : shards[s].sheets()) shards_[s].sheets.push_back({.sheet = sheet});
  }
  for (const Piece& piece : pieces_) {
    ++shards_[piece.stored.shard].sheets[piece.stored.sheet].unread;
  }
}

uint64_t Snapshot::bytes_to_make(const Layout& layout, std::span<Shard> shards,
                                 compute::Backend& backend, const SnapshotOf& of) {
  uint64_t bytes = 0;
  if (backend.host_reaches_memory()) {
    for (const Shard& shard : shards) bytes += bitmap_words(shard.rows()) * sizeof(uint64_t);
    return bytes;
  }
  for (const StoredPiece& piece : stored_pieces(layout, shards, PieceUse::kSave)) {
    if (is_read(piece, of)) bytes += static_cast<uint64_t>(rows_of(piece, of)) * piece.row_bytes();
  }
  return bytes;
}

void Snapshot::copy_all(compute::Backend& backend) {
  for (Piece& piece : pieces_) {
    const StoredPiece& stored = piece.stored;
    piece.copy = room_.allocate(static_cast<size_t>(stored.cells.rows) * piece.row_bytes);
    const auto width = static_cast<size_t>(stored.row_width());
    const int64_t most = compute::rows_at_once(piece.row_bytes);
    for (int64_t first = 0; first < stored.cells.rows; first += most) {
      const compute::RowTransfer transfer{
          .from = {stored.at_row(first), stored.element, stored.stride},
          .to = {piece.copy->data + static_cast<size_t>(first) * piece.row_bytes, stored.element,
                 width},
          .rows = std::min(most, stored.cells.rows - first),
          .width = stored.row_width()};
      backend.transfer().copy_to_host({&transfer, 1});
    }
  }
}

void Snapshot::copy_listed(compute::Backend& backend, const SnapshotOf& of) {
  std::vector<int64_t> rows;
  for (Piece& piece : pieces_) {
    const StoredPiece& stored = piece.stored;
    const auto bits = of.listed[stored.shard];
    rows.resize(static_cast<size_t>(rows_of(stored, of)));
    if (rows.empty()) continue;
    compute::list_row_bits(bits, 0, rows);
    piece.copy = room_.allocate(rows.size() * piece.row_bytes);
    const auto width = static_cast<size_t>(stored.row_width());
    // The numbers of rows travel, too.
    const auto most =
        static_cast<size_t>(compute::rows_at_once(std::max(piece.row_bytes, sizeof(int64_t))));
    for (size_t first = 0; first < rows.size(); first += most) {
      const auto some = std::span(rows).subspan(first, std::min(most, rows.size() - first));
      const compute::RowTransfer transfer{
          .from = {stored.data, stored.element, stored.stride, some.data()},
          .to = {piece.copy->data + first * piece.row_bytes, stored.element, width},
          .rows = std::ssize(some),
          .width = stored.row_width()};
      backend.transfer().copy_to_host({&transfer, 1});
    }
  }
}

int64_t Snapshot::ShardState::passed() const {
  int64_t least = rows;
  for (const SheetState& sheet : sheets) least = std::min(least, sheet.passed);
  return least;
}

void Snapshot::free(SheetState& sheet) noexcept {
  std::vector<Copies>().swap(sheet.copies);
  room_.give_back(sheet.room);
}

void Snapshot::free(ShardState& shard) noexcept {
  for (SheetState& sheet : shard.sheets) free(sheet);
  std::vector<std::vector<int64_t>>().swap(shard.kept);
  std::vector<uint64_t>().swap(shard.copied);
}

void Snapshot::read(size_t piece, int64_t first, int64_t rows, std::byte* to) {
  const Piece& own = pieces_[piece];
  const int64_t most = compute::rows_at_once(own.row_bytes, kBytesAtOnce);
  const int64_t end = first + rows;
  for (int64_t row = first; row < end; row += most) {
    const int64_t some = std::min(most, end - row);
    {
      const std::lock_guard lock(mutex_);
      if (failure_) throw core::Error(*failure_);
      read_some(own, row, some, to);
      pass(own, row + some);
    }
    room_.make_ready();
    to += static_cast<size_t>(some) * own.row_bytes;
  }
}

void Snapshot::read_listed(size_t piece, std::span<const int64_t> rows, std::byte* to) {
  Piece& own = pieces_[piece];
  const auto most = static_cast<size_t>(compute::rows_at_once(own.row_bytes, kBytesAtOnce));
  for (size_t first = 0; first < rows.size(); first += most) {
    const auto some = rows.subspan(first, std::min(most, rows.size() - first));
    {
      const std::lock_guard lock(mutex_);
      if (failure_) throw core::Error(*failure_);
      read_some_listed(own, some, to);
      pass(own, some.back() + 1);
    }
    room_.make_ready();
    to += some.size() * own.row_bytes;
  }
}

void Snapshot::read_some_listed(Piece& piece, std::span<const int64_t> rows, std::byte* to) const {
  const size_t bytes = piece.row_bytes;
  if (copied_whole_) {
    std::memcpy(to, piece.copy->data + piece.rows_read * bytes, rows.size() * bytes);
    piece.rows_read += rows.size();
    return;
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(to + i * bytes, piece.stored.at_row(rows[i]), bytes);
  }
  const StoredPiece& stored = piece.stored;
  const SheetState& state = shards_[stored.shard].sheets[stored.sheet];
  const auto offset = static_cast<size_t>(stored.data - state.sheet.data);
  for (const Copies& copies : state.copies) {
    auto row = std::ranges::lower_bound(copies.rows, rows.front());
    for (size_t i = 0; row != copies.rows.end() && *row <= rows.back(); ++row) {
      while (rows[i] < *row) ++i;  // all copies are of listed rows
      const auto at = static_cast<size_t>(row - copies.rows.begin());
      std::memcpy(to + i * bytes, copies.data + offset + at * state.sheet.row_bytes(), bytes);
    }
  }
}

void Snapshot::read_some(const Piece& piece, int64_t first, int64_t rows, std::byte* to) const {
  const size_t bytes = piece.row_bytes;
  if (copied_whole_) {
    std::memcpy(to, piece.copy->data + static_cast<size_t>(first) * bytes,
                static_cast<size_t>(rows) * bytes);
    return;
  }
  const StoredPiece& stored = piece.stored;
  const SheetState& state = shards_[stored.shard].sheets[stored.sheet];
  const Sheet& sheet = state.sheet;
  if (sheet.row_bytes() == bytes) {
    std::memcpy(to, stored.at_row(first), static_cast<size_t>(rows) * bytes);
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(to + static_cast<size_t>(r) * bytes, stored.at_row(first + r), bytes);
    }
  }
  const auto offset = static_cast<size_t>(stored.data - sheet.data);
  for (const Copies& copies : state.copies) {
    const std::byte* const from = copies.data + offset;
    auto row = std::lower_bound(copies.rows.begin(), copies.rows.end(), first);
    for (; row != copies.rows.end() && *row < first + rows; ++row) {
      std::memcpy(to + static_cast<size_t>(*row - first) * bytes,
                  from + static_cast<size_t>(row - copies.rows.begin()) * sheet.row_bytes(), bytes);
    }
  }
}

void Snapshot::pass(const Piece& piece, int64_t end) {
  if (copied_whole_) return;
  ShardState& shard = shards_[piece.stored.shard];
  SheetState& sheet = shard.sheets[piece.stored.sheet];
  if (sheet.unread == 1) sheet.passed = end;
  if (end < shard.rows || --sheet.unread != 0) return;
  free(sheet);
  if (shard.passed() < shard.rows) return;
  free(shard);
  const auto unread = [](const ShardState& other) { return other.passed() < other.rows; };
  if (std::none_of(shards_.begin(), shards_.end(), unread)) room_.close();
}

void Snapshot::keep(size_t shard, std::span<const int64_t> rows) noexcept {
  keep_rows(shards_[shard], std::ssize(rows),
            [&](int64_t i) { return rows[static_cast<size_t>(i)]; });
}

void Snapshot::keep_range(size_t shard, int64_t first, int64_t count) noexcept {
  keep_rows(shards_[shard], count, [&](int64_t i) { return first + i; });
}

template <class RowAt>
void Snapshot::keep_rows(ShardState& shard, int64_t count, RowAt row_at) noexcept {
  const int64_t passed = shard.passed();
  if (shard.copied.empty() || passed == shard.rows) return;
  try {
    wanted_.clear();
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = row_at(i);
      uint64_t& word = shard.copied[static_cast<size_t>(row / 64)];
      const uint64_t bit = uint64_t{1} << (row % 64);
      if (row < passed || (word & bit) != 0) continue;
      word |= bit;
      wanted_.push_back(row);
    }
    if (!wanted_.empty()) keep_wanted(shard);
  } catch (const std::exception& error) {
    fail(SHARDREC_OUT_OF_MEMORY,
         "rows that a step changed while the commit was being written could not be kept as they "
         "were: ",
         error.what());
  }
}

void Snapshot::copy_rows(const Sheet& sheet, std::span<const int64_t> rows, std::byte* to) {
  const size_t bytes = sheet.row_bytes();
  const int64_t most = compute::rows_at_once(bytes);
  for (int64_t first = 0; first < std::ssize(rows); first += most) {
    const compute::RowTransfer transfer{
        .from = {sheet.data, sheet.element, sheet.width, rows.data() + first},
        .to = {to + static_cast<size_t>(first) * bytes, sheet.element, sheet.width},
        .rows = std::min(most, std::ssize(rows) - first),
        .width = static_cast<int64_t>(sheet.width)};
    backend_->transfer().copy_to_host({&transfer, 1});
  }
}

void Snapshot::keep_wanted(ShardState& shard) {
  if (!std::is_sorted(wanted_.begin(), wanted_.end())) std::sort(wanted_.begin(), wanted_.end());
  const std::span<const int64_t> rows = shard.kept.emplace_back(wanted_);
  for (SheetState& state : shard.sheets) {
    if (state.passed == shard.rows) continue;
    const Sheet& sheet = state.sheet;
    const size_t bytes = sheet.row_bytes();
    for (auto rest = rows; !rest.empty();) {
      const CopyRoom::Part room = room_.take(state.room, rest.size() * bytes, bytes);
      const Copies copies{rest.first(room.bytes / bytes), room.data};
      copy_rows(sheet, copies.rows, room.data);
      state.copies.push_back(copies);
      rest = rest.subspan(copies.rows.size());
    }
  }
}

// The first failure stays.
void Snapshot::fail(shardrec_status status, const char* what, const char* reason) noexcept {
  room_.close();
  for (ShardState& shard : shards_) free(shard);
  for (Piece& piece : pieces_) piece.copy.reset();
  if (failure_) return;
  try {
    failure_.emplace(status, core::sentence(what, reason));
  } catch (...) {
    failure_.emplace(status, std::string());
  }
}

void Snapshot::stop() noexcept {
  const std::lock_guard lock(mutex_);
  fail(SHARDREC_CANCELLED, "the commit was given up before it was written", "");
}

void Snapshot::end() noexcept {
  stop();
  over_.store(true, std::memory_order_release);
}

}  // namespace shardrec::embedding
