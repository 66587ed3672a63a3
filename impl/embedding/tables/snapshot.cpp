#include "embedding/tables/snapshot.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "core/memory.h"

namespace shardrec::embedding {
namespace {

// A step waits for at most so many bytes that are being read.
constexpr size_t kBytesAtOnce = size_t{256} << 10;

// Of copies.
constexpr size_t kLeastBlock = size_t{16} << 10;
constexpr size_t kMostBlock = size_t{4} << 20;
constexpr size_t kUnchecked = size_t{64} << 20;

class BookedPages final : public compute::Allocation {
 public:
  BookedPages(size_t bytes, compute::BookedBytes booked)
      : pages_(bytes), booked_(std::move(booked)), bytes_(static_cast<int64_t>(bytes)) {
    data = pages_.data();
    size = bytes;
    booked_->fetch_add(bytes_, std::memory_order_relaxed);
  }
  ~BookedPages() override { booked_->fetch_sub(bytes_, std::memory_order_relaxed); }

 private:
  core::Pages pages_;
  compute::BookedBytes booked_;
  int64_t bytes_;
};

size_t row_bytes_of(const StoredPiece& piece) {
  return static_cast<size_t>(piece.row_width()) * compute::element_bytes(piece.element);
}

size_t bitmap_words(int64_t rows) { return static_cast<size_t>((rows + 63) / 64); }

}  // namespace

Snapshot::Snapshot(const Layout& layout, std::span<Shard> shards, compute::Backend& backend,
                   compute::BookedBytes booked, bool none)
    : backend_(&backend),
      booked_(std::move(booked)),
      copied_whole_(!backend.host_reaches_memory()),
      shards_(shards.size()) {
  if (none) return;
  for (const StoredPiece& stored : stored_pieces(layout, shards, PieceUse::kSave)) {
    pieces_.push_back({.stored = stored, .row_bytes = row_bytes_of(stored), .copy = nullptr});
  }
  if (copied_whole_) {
    copy_all(backend);
    return;
  }
  for (size_t s = 0; s < shards.size(); ++s) {
    shards_[s].rows = shards[s].rows();
    for (const Sheet& sheet : shards[s].sheets()) shards_[s].sheets.push_back({.sheet = sheet});
  }
  for (const Piece& piece : pieces_) {
    ++shards_[piece.stored.shard].sheets[piece.stored.sheet].unread;
  }
  for (ShardState& shard : shards_) {
    for (SheetState& sheet : shard.sheets) {
      if (sheet.unread == 0) sheet.passed = shard.rows;  // others write it down
    }
    if (shard.passed() < shard.rows) shard.copied.resize(bitmap_words(shard.rows));
  }
}

uint64_t Snapshot::bytes_to_make(const Layout& layout, std::span<Shard> shards,
                                 compute::Backend& backend) {
  uint64_t bytes = 0;
  if (backend.host_reaches_memory()) {
    for (const Shard& shard : shards) bytes += bitmap_words(shard.rows()) * sizeof(uint64_t);
    return bytes;
  }
  for (const StoredPiece& piece : stored_pieces(layout, shards, PieceUse::kSave)) {
    bytes += static_cast<uint64_t>(piece.cells.rows) * row_bytes_of(piece);
  }
  return bytes;
}

void Snapshot::copy_all(compute::Backend& backend) {
  for (Piece& piece : pieces_) {
    const StoredPiece& stored = piece.stored;
    piece.copy = allocate(static_cast<size_t>(stored.cells.rows) * piece.row_bytes);
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

int64_t Snapshot::ShardState::passed() const {
  int64_t least = rows;
  for (const SheetState& sheet : sheets) least = std::min(least, sheet.passed);
  return least;
}

// Blocks grow with what there is, up to some huge pages: few page faults, and little that is not used.
std::byte* Snapshot::take_room(SheetState& sheet, size_t bytes) {
  if (bytes > sheet.left) {
    const size_t size = std::max(bytes, std::clamp(sheet.total, kLeastBlock, kMostBlock));
    sheet.blocks.push_back(allocate(size));
    sheet.room = sheet.blocks.back()->data;
    sheet.left = size;
    sheet.total += size;
  }
  std::byte* const taken = sheet.room;
  sheet.room += bytes;
  sheet.left -= bytes;
  return taken;
}

std::unique_ptr<compute::Allocation> Snapshot::allocate(size_t bytes) {
  unchecked_ += bytes;
  if (unchecked_ >= kUnchecked) {
    core::require_room(unchecked_, "a copy of rows");
    unchecked_ = 0;
  }
  return std::make_unique<BookedPages>(bytes, booked_);
}

void Snapshot::SheetState::free() noexcept {
  std::vector<std::unique_ptr<compute::Allocation>>().swap(blocks);
  left = total = 0;
}

void Snapshot::ShardState::free() noexcept {
  for (SheetState& sheet : sheets) sheet.free();
  std::vector<Copies>().swap(copies);
  std::vector<uint64_t>().swap(copied);
}

void Snapshot::read(size_t piece, int64_t first, int64_t rows, std::byte* to) {
  const Piece& own = pieces_[piece];
  const int64_t most = compute::rows_at_once(own.row_bytes, kBytesAtOnce);
  const int64_t end = first + rows;
  for (int64_t row = first; row < end; row += most) {
    const int64_t some = std::min(most, end - row);
    const std::lock_guard lock(mutex_);
    if (failure_) throw core::Error(*failure_);
    read_some(own, row, some, to);
    pass(own, row + some);
    to += static_cast<size_t>(some) * own.row_bytes;
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
  const ShardState& shard = shards_[stored.shard];
  const Sheet& sheet = shard.sheets[stored.sheet].sheet;
  if (sheet.row_bytes() == bytes) {
    std::memcpy(to, stored.at_row(first), static_cast<size_t>(rows) * bytes);
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(to + static_cast<size_t>(r) * bytes, stored.at_row(first + r), bytes);
    }
  }
  const auto offset = static_cast<size_t>(stored.data - sheet.data);
  for (const Copies& copies : shard.copies) {
    if (copies.sheets[stored.sheet] == nullptr) continue;
    const std::byte* const from = copies.sheets[stored.sheet] + offset;
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
  for (Copies& copies : shard.copies) copies.sheets[piece.stored.sheet] = nullptr;
  sheet.free();
  if (shard.passed() == shard.rows) shard.free();
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
    if (!wanted_.empty()) copy_rows(shard);
  } catch (const std::exception& error) {
    fail(SHARDREC_OUT_OF_MEMORY,
         "rows that a step changed while the commit was being written could not be kept as they "
         "were: ",
         error.what());
  }
}

void Snapshot::copy_rows(ShardState& shard) {
  if (!std::is_sorted(wanted_.begin(), wanted_.end())) std::sort(wanted_.begin(), wanted_.end());
  Copies copies{.rows = wanted_, .sheets = {}};
  copies.sheets.resize(shard.sheets.size());
  const auto count = std::ssize(wanted_);
  for (size_t s = 0; s < shard.sheets.size(); ++s) {
    SheetState& state = shard.sheets[s];
    if (state.passed == shard.rows) continue;
    const Sheet& sheet = state.sheet;
    const size_t bytes = sheet.row_bytes();
    std::byte* const to = take_room(state, static_cast<size_t>(count) * bytes);
    const int64_t most = compute::rows_at_once(bytes);
    for (int64_t first = 0; first < count; first += most) {
      const compute::RowTransfer transfer{
          .from = {sheet.data, sheet.element, sheet.width, wanted_.data() + first},
          .to = {to + static_cast<size_t>(first) * bytes, sheet.element, sheet.width},
          .rows = std::min(most, count - first),
          .width = static_cast<int64_t>(sheet.width)};
      backend_->transfer().copy_to_host({&transfer, 1});
    }
    copies.sheets[s] = to;
  }
  shard.copies.push_back(std::move(copies));
}

// The first failure stays.
void Snapshot::fail(shardrec_status status, const char* what, const char* reason) noexcept {
  for (ShardState& shard : shards_) shard.free();
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
