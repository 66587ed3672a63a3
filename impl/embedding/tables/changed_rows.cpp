#include "embedding/tables/changed_rows.h"

#include <algorithm>
#include <utility>

namespace shardrec::embedding {
namespace {

using compute::RowWord;

// Words that are moved at once.
constexpr size_t kPieceWords = compute::kMostTransferred / sizeof(RowWord);

// Words as rows of one element each, which is moved and never read as a number.
compute::RowTransfer transfer_of(const RowWord* from, RowWord* to, size_t count) {
  static_assert(sizeof(RowWord) == compute::element_bytes(compute::Element::kFloat32));
  return {.from = {from, compute::Element::kFloat32, 1},
          .to = {to, compute::Element::kFloat32, 1},
          .rows = static_cast<int64_t>(count),
          .width = 1};
}

void set_bits(std::span<RowWord> words, std::span<const int64_t> rows) noexcept {
  for (const int64_t row : rows) {
    words[static_cast<size_t>(row / compute::kRowsOfAWord)] |= compute::bit_of_row(row);
  }
}

void set_range(std::span<RowWord> words, int64_t first, int64_t count) noexcept {
  const int64_t end = first + count;
  for (int64_t row = first; row < end;) {
    RowWord& word = words[static_cast<size_t>(row / compute::kRowsOfAWord)];
    if (row % compute::kRowsOfAWord == 0 && end - row >= compute::kRowsOfAWord) {
      word = ~RowWord{0};
      row += compute::kRowsOfAWord;
    } else {
      word |= compute::bit_of_row(row++);
    }
  }
}

}  // namespace

RowMark::RowMark(std::vector<ShardWords> shards, size_t words, compute::BookedBytes booked)
    : shards_(std::move(shards)),
      memory_(compute::book(compute::cpu_memory(), std::move(booked))),
      words_(memory_.resize_as<RowWord>(words)) {
  std::ranges::fill(words_, RowWord{0});
}

uint64_t ChangedRows::host_bytes(const Layout& layout, bool backend_on_host) {
  size_t words = 0;
  for (const int32_t part : layout.parts_of(layout.rank())) {
    const Part& own = layout.parts()[static_cast<size_t>(part)];
    if (!layout.table(own.table).replicated) words += compute::row_words(own.rows);
  }
  return (words * (backend_on_host ? 2 : 1) + std::min(words, kPieceWords)) * sizeof(RowWord);
}

void ChangedRows::lay_out(const Layout& layout, std::span<const Shard> shards) {
  shards_.resize(shards.size());
  size_t next = 0;
  for (const bool replicated : {false, true}) {
    for (size_t s = 0; s < shards.size(); ++s) {
      if (layout.table(shards[s].table()).replicated != replicated) continue;
      shards_[s] = {.first = next, .count = compute::row_words(shards[s].rows())};
      next += shards_[s].count;
    }
    if (!replicated) cut_words_ = next;
  }
  all_words_ = next;
}

// What was noted before has been gathered.
void ChangedRows::grow(size_t words, compute::Backend& backend,
                       const compute::BookedBytes& booked) {
  if (words_ != nullptr && words <= operations_count_) return;
  const size_t at_once = std::min(words, kPieceWords);
  compute::Buffer piece_memory(compute::book(compute::cpu_memory(), booked));
  const auto piece = piece_memory.resize_as<RowWord>(at_once);
  auto grown = backend.memory()->allocate(words * sizeof(RowWord));
  piece_memory_ = std::move(piece_memory);
  piece_ = piece;
  words_ = std::move(grown);
  operations_count_ = words;
  for (size_t first = 0; first < words; first += kPieceWords) {
    const size_t count = std::min(kPieceWords, words - first);
    std::fill_n(piece_.begin(), count, RowWord{0});
    const auto zeros = transfer_of(piece_.data(), operations_words() + first, count);
    backend.transfer().copy_from_host({&zeros, 1});
  }
}

void ChangedRows::begin(const Layout& layout, std::span<const Shard> shards,
                        compute::Backend& backend, compute::BookedBytes booked) {
  lay_out(layout, shards);
  gather(backend);
  grow(cut_words_, backend, booked);
  host_memory_.emplace(compute::book(compute::cpu_memory(), std::move(booked)));
  host_words_ = host_memory_->resize_as<RowWord>(cut_words_);
  clear();
}

std::shared_ptr<const RowMark> ChangedRows::mark(const Layout& layout,
                                                 std::span<const Shard> shards,
                                                 compute::Backend& backend,
                                                 const compute::BookedBytes& booked) {
  lay_out(layout, shards);
  gather(backend);
  std::erase_if(marks_, [](const std::weak_ptr<RowMark>& mark) { return mark.expired(); });
  marks_.reserve(marks_.size() + 1);
  std::shared_ptr<RowMark> made(new RowMark(shards_, all_words_, booked));
  grow(all_words_, backend, booked);
  marks_.push_back(made);
  return made;
}

bool ChangedRows::any_mark() noexcept {
  return std::ranges::any_of(marks_,
                             [](const std::weak_ptr<RowMark>& mark) { return !mark.expired(); });
}

compute::RowWord* ChangedRows::bits(size_t shard) noexcept {
  if (words_ == nullptr || shards_[shard].count == 0) return nullptr;
  const size_t first = shards_[shard].first;
  if (first >= host_words_.size() && !any_mark()) return nullptr;
  may_be_set_ = true;
  return operations_words() + first;
}

template <class Take>
void ChangedRows::for_each_mark(size_t shard, Take take) noexcept {
  for (const std::weak_ptr<RowMark>& each : marks_) {
    const std::shared_ptr<RowMark> mark = each.lock();
    if (mark == nullptr) continue;
    take(mark->words_.subspan(shards_[shard].first, shards_[shard].count));
  }
}

void ChangedRows::add(size_t shard, std::span<const int64_t> rows) noexcept {
  if (words_ == nullptr) return;
  if (shards_[shard].first < host_words_.size()) {
    set_bits(host_words_.subspan(shards_[shard].first, shards_[shard].count), rows);
  }
  add_synced(shard, rows);
}

void ChangedRows::add_range(size_t shard, int64_t first, int64_t count) noexcept {
  if (words_ == nullptr) return;
  if (shards_[shard].first < host_words_.size()) {
    set_range(host_words_.subspan(shards_[shard].first, shards_[shard].count), first, count);
  }
  add_synced_range(shard, first, count);
}

void ChangedRows::add_synced(size_t shard, std::span<const int64_t> rows) noexcept {
  for_each_mark(shard, [&](std::span<RowWord> words) { set_bits(words, rows); });
}

void ChangedRows::add_synced_range(size_t shard, int64_t first, int64_t count) noexcept {
  for_each_mark(shard, [&](std::span<RowWord> words) { set_range(words, first, count); });
}

void ChangedRows::add_all_to_marks(std::span<const Shard> shards) noexcept {
  if (!any_mark()) return;
  for (size_t s = 0; s < shards.size(); ++s) add_synced_range(s, 0, shards[s].rows());
}

void ChangedRows::gather(compute::Backend& backend) {
  if (!may_be_set_) return;
  const auto marks = [&] {
    std::vector<std::shared_ptr<RowMark>> there;
    for (const std::weak_ptr<RowMark>& mark : marks_) {
      if (auto one = mark.lock()) there.push_back(std::move(one));
    }
    return there;
  }();
  for (size_t first = 0; first < operations_count_; first += kPieceWords) {
    const size_t count = std::min(kPieceWords, operations_count_ - first);
    const auto moved = transfer_of(operations_words() + first, piece_.data(), count);
    backend.transfer().copy_to_host({&moved, 1});
    for (size_t i = 0; first + i < host_words_.size() && i < count; ++i) {
      host_words_[first + i] |= piece_[i];
    }
    for (const std::shared_ptr<RowMark>& mark : marks) {
      for (size_t i = 0; i < count; ++i) mark->words_[first + i] |= piece_[i];
    }
    std::fill_n(piece_.begin(), count, RowWord{0});
    const auto zeros = transfer_of(piece_.data(), operations_words() + first, count);
    backend.transfer().copy_from_host({&zeros, 1});
  }
  may_be_set_ = false;
}

bool ChangedRows::within_shards(std::span<const Shard> shards) const noexcept {
  for (size_t s = 0; s < shards.size(); ++s) {
    const int64_t in_last = shards[s].rows() % compute::kRowsOfAWord;
    if (in_last != 0 && !of(s).empty() && of(s).back() >> in_last != 0) return false;
  }
  return true;
}

void ChangedRows::clear() noexcept { std::ranges::fill(host_words_, RowWord{0}); }

}  // namespace shardrec::embedding
