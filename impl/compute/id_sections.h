// The section of ids of a block: every id; or the different ones in the order in which they come first, then a
// code for each id that says which of them it is. Ids take 4 or 8 bytes, codes as few as tell them apart
// (code_bytes), and both begin at multiples of 8 bytes, with zeros before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "compute/bags.h"
#include "core/align.h"

namespace shardrec::compute {

constexpr size_t plain_id_bytes(uint64_t ids, bool is_64) {
  return core::align_up(ids * (is_64 ? sizeof(int64_t) : sizeof(int32_t)), 8);
}

// Where the codes begin that follow so many different ids.
constexpr size_t code_offset(uint64_t unique, bool is_64) { return plain_id_bytes(unique, is_64); }

// unique 0: of every id.
constexpr size_t id_section_bytes(uint64_t ids, uint64_t unique, bool is_64) {
  if (unique == 0) return plain_id_bytes(ids, is_64);
  return code_offset(unique, is_64) + core::align_up(ids * code_bytes(unique), 8);
}

// The most different ones of so many ids with which the section is shorter than that of every id; 0: none.
inline int64_t most_unique(int64_t ids, bool is_64) {
  constexpr int64_t kFewest = 16;  // below this there is next to nothing to win
  if (ids < kFewest) return 0;
  const auto count = static_cast<uint64_t>(ids);
  const size_t plain = id_section_bytes(count, 0, is_64);
  const auto shorter = [&](int64_t unique) {
    return id_section_bytes(count, static_cast<uint64_t>(unique), is_64) < plain;
  };
  int64_t most = 0;
  // Within a width of codes, bytes rise with the number of different ids.
  int64_t low = 0;
  for (const int64_t up_to : {int64_t{256}, int64_t{65536}, ids}) {
    int64_t first = low + 1;
    int64_t last = std::min(up_to, ids);
    low = up_to;
    if (first > last || !shorter(first)) continue;
    while (first < last) {
      const int64_t middle = first + (last - first + 1) / 2;
      if (shorter(middle)) {
        first = middle;
      } else {
        last = middle - 1;
      }
    }
    most = first;
  }
  return most;
}

}  // namespace shardrec::compute
