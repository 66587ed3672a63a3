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

// Of a shard of so many rows.
size_t words_kept(const Layout& layout, int32_t table, int64_t rows) {
  return layout.table(table).replicated ? 0 : compute::row_words(rows);
}

}  // namespace

uint64_t ChangedRows::host_bytes(const Layout& layout, bool backend_on_host) {
  size_t words = 0;
  for (const int32_t part : layout.parts_of(layout.rank())) {
    const Part& own = layout.parts()[static_cast<size_t>(part)];
    words += words_kept(layout, own.table, own.rows);
  }
  return (words * (backend_on_host ? 2 : 1) + std::min(words, kPieceWords)) * sizeof(RowWord);
}

void ChangedRows::begin(const Layout& layout, std::span<const Shard> shards,
                        compute::Backend& backend, compute::BookedBytes booked) {
  first_word_.assign(1, 0);
  for (const Shard& shard : shards) {
    first_word_.push_back(first_word_.back() + words_kept(layout, shard.table(), shard.rows()));
  }
  const size_t count = first_word_.back();
  const size_t at_once = std::min(count, kPieceWords);
  host_memory_.emplace(compute::book(compute::cpu_memory(), std::move(booked)));
  const auto host = host_memory_->resize_as<RowWord>(count + at_once);
  std::fill(host.begin(), host.end(), 0);
  host_words_ = host.first(count);
  piece_ = host.last(at_once);
  words_ = backend.memory()->allocate(count * sizeof(RowWord));
  for (size_t first = 0; first < count; first += kPieceWords) {
    const size_t words = std::min(kPieceWords, count - first);
    const auto zeros = transfer_of(piece_.data(), operations_words() + first, words);
    backend.transfer().copy_from_host({&zeros, 1});
  }
}

void ChangedRows::add(size_t shard, std::span<const int64_t> rows) noexcept {
  if (!keeps(shard)) return;
  RowWord* const words = host_words_.data() + first_word_[shard];
  for (const int64_t row : rows) words[row / compute::kRowsOfAWord] |= compute::bit_of_row(row);
}

void ChangedRows::add_range(size_t shard, int64_t first, int64_t count) noexcept {
  if (!keeps(shard)) return;
  RowWord* const words = host_words_.data() + first_word_[shard];
  for (int64_t row = first; row < first + count; ++row) {
    words[row / compute::kRowsOfAWord] |= compute::bit_of_row(row);
  }
}

void ChangedRows::gather(compute::Backend& backend) {
  for (size_t first = 0; first < host_words_.size(); first += kPieceWords) {
    const size_t count = std::min(kPieceWords, host_words_.size() - first);
    const auto moved = transfer_of(operations_words() + first, piece_.data(), count);
    backend.transfer().copy_to_host({&moved, 1});
    for (size_t i = 0; i < count; ++i) host_words_[first + i] |= piece_[i];
    std::fill_n(piece_.begin(), count, RowWord{0});
    const auto zeros = transfer_of(piece_.data(), operations_words() + first, count);
    backend.transfer().copy_from_host({&zeros, 1});
  }
}

bool ChangedRows::within_shards(std::span<const Shard> shards) const noexcept {
  for (size_t s = 0; s < shards.size(); ++s) {
    const int64_t in_last = shards[s].rows() % compute::kRowsOfAWord;
    if (in_last != 0 && !of(s).empty() && of(s).back() >> in_last != 0) return false;
  }
  return true;
}

void ChangedRows::clear() noexcept { std::fill(host_words_.begin(), host_words_.end(), 0); }

}  // namespace shardrec::embedding
