// A bit per row of a shard, in words: which of its rows operations have changed (TouchedRows::changed).
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace shardrec::compute {

using RowWord = uint32_t;
inline constexpr int64_t kRowsOfAWord = 32;

constexpr size_t row_words(int64_t rows) {
  return static_cast<size_t>((rows + kRowsOfAWord - 1) / kRowsOfAWord);
}
constexpr RowWord bit_of_row(int64_t row) {
  return RowWord{1} << (static_cast<uint64_t>(row) % static_cast<uint64_t>(kRowsOfAWord));
}

// Sets the bits of rows that ascend. Other threads may set those of rows below and above at once: they share
// no word with these but the first and the last one.
inline void set_row_bits(RowWord* bits, const int64_t* rows, int64_t count) noexcept {
  if (count == 0) return;
  const auto word_of = [&](int64_t i) {
    return static_cast<uint64_t>(rows[i]) / static_cast<uint64_t>(kRowsOfAWord);
  };
  const auto set_shared = [&](uint64_t word, RowWord set) {
    std::atomic_ref(bits[word]).fetch_or(set, std::memory_order_relaxed);
  };
  const uint64_t first = word_of(0);
  const uint64_t last = word_of(count - 1);
  int64_t begin = 0;
  RowWord set = 0;
  for (; begin < count && word_of(begin) == first; ++begin) set |= bit_of_row(rows[begin]);
  set_shared(first, set);
  if (first == last) return;
  int64_t end = count;
  for (set = 0; word_of(end - 1) == last; --end) set |= bit_of_row(rows[end - 1]);
  set_shared(last, set);
  // No branch in this loop: where words change cannot be predicted.
  for (int64_t i = begin; i < end; ++i) bits[word_of(i)] |= bit_of_row(rows[i]);
}

inline int64_t count_row_bits(std::span<const RowWord> bits) noexcept {
  int64_t count = 0;
  for (const RowWord word : bits) count += std::popcount(word);
  return count;
}

// Lists the rows whose bits are set, ascending, from row `from` on, as many as there is room for. Returns how many.
inline size_t list_row_bits(std::span<const RowWord> bits, int64_t from,
                            std::span<int64_t> rows) noexcept {
  size_t count = 0;
  const auto first = static_cast<size_t>(from / kRowsOfAWord);
  for (size_t w = first; w < bits.size() && count < rows.size(); ++w) {
    RowWord rest = bits[w];
    if (w == first) rest &= ~RowWord{0} << (from % kRowsOfAWord);
    for (; rest != 0 && count < rows.size(); rest &= rest - 1) {
      rows[count++] = static_cast<int64_t>(w) * kRowsOfAWord + std::countr_zero(rest);
    }
  }
  return count;
}

}  // namespace shardrec::compute
