// A bit per row of a shard, in words: which of its rows operations have changed (TouchedRows::changed).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace shardrec::compute {

using RowWord = uint32_t;
inline constexpr int64_t kRowsOfAWord = 32;

constexpr size_t row_words(int64_t rows) {
  return static_cast<size_t>((rows + kRowsOfAWord - 1) / kRowsOfAWord);
}
constexpr RowWord bit_of_row(int64_t row) { return RowWord{1} << (row % kRowsOfAWord); }

// Sets the bits of rows that ascend. Other threads may set those of rows below and above at once: they share
// no word with these but the first and the last one.
inline void set_row_bits(RowWord* bits, const int64_t* rows, int64_t count) noexcept {
  if (count == 0) return;
  const auto word_of = [&](int64_t i) { return rows[i] / kRowsOfAWord; };
  const int64_t first = word_of(0);
  const int64_t last = word_of(count - 1);
  for (int64_t i = 0; i < count;) {
    const int64_t word = word_of(i);
    RowWord set = 0;
    for (; i < count && word_of(i) == word; ++i) set |= bit_of_row(rows[i]);
    if (word == first || word == last) {
      std::atomic_ref(bits[word]).fetch_or(set, std::memory_order_relaxed);
    } else {
      bits[word] |= set;
    }
  }
}

}  // namespace shardrec::compute
