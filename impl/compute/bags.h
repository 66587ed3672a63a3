// The bags of a feature, or of a part of it, as stages hand them on: lengths in one of two forms, and
// a way to walk them from any place. Ids, weights and rows lie beside them, in the order of the bags.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shardrec::compute {

// Items of a feature are handled in chunks of so many: a chunk can be walked without the ones
// before. Items are the samples; of a sequence, the ids.
constexpr int64_t kChunk = 512;
constexpr int64_t chunks_of(int64_t items) { return (items + kChunk - 1) / kChunk; }

struct SparseLength {
  uint32_t sample = 0;
  uint32_t count = 0;
};

struct Bags {
  int64_t ids = 0;
  int64_t bags = 0;                              // not empty
  int64_t samples = 0;                           // bags, empty ones included
  const uint32_t* dense_lengths = nullptr;       // [samples]
  const SparseLength* sparse_lengths = nullptr;  // [bags]: of those that are not empty

  // Is bag number `bag` of those that are not empty, the next one in order, that of this sample?
  bool holds(int64_t bag, int64_t sample) const {
    return sparse_lengths != nullptr ? bag < bags && sparse_lengths[bag].sample == sample
                                     : dense_lengths[sample] != 0;
  }
};

// Bytes that say which of so many different ids is meant.
constexpr size_t code_bytes(uint64_t unique) { return unique <= 256 ? 1 : unique <= 65536 ? 2 : 4; }

// The bags of a block, as the rank remembers them that sent their ids.
struct SentBags : Bags {
  const uint32_t* chunk_rows = nullptr;  // [chunks + 1]: bags not empty before; of a sequence, ids
  const uint32_t* chunk_ids = nullptr;   // [chunks + 1]: ids before each chunk
  // Where different ids travelled once: their number, and which of them each id is.
  int64_t unique = 0;
  const std::byte* codes = nullptr;
};

// Ids go where their interval of the table's rows goes, or nowhere.
constexpr int32_t kDroppedId = -1;

// The samples of the output that each bag of a feature stands for, ascending. starts null: the
// sample of its number.
struct BagSamples {
  const uint32_t* starts = nullptr;  // [bags + 1]
  const uint32_t* samples = nullptr;

  std::span<const uint32_t> of(int64_t bag) const {
    return {samples + starts[bag], starts[bag + 1] - starts[bag]};
  }
};

// A place between two bags.
struct BagCursor {
  int64_t sample = 0;  // of sparse lengths: their number
  int64_t bag = 0;     // among those not empty
  int64_t id = 0;
};

inline BagCursor end_of_bags(const Bags& bags) {
  return {bags.sparse_lengths != nullptr ? bags.bags : bags.samples, bags.bags, bags.ids};
}

// Calls visit(bag number among those not empty, sample, length) for the bags that are not empty from
// one place to another.
template <class Visit>
void for_each_bag(const Bags& bags, const BagCursor& from, const BagCursor& to, Visit visit) {
  if (from.bag == to.bag) return;
  if (bags.sparse_lengths != nullptr) {
    for (int64_t bag = from.bag; bag < to.bag; ++bag) {
      visit(bag, int64_t{bags.sparse_lengths[bag].sample}, bags.sparse_lengths[bag].count);
    }
    return;
  }
  int64_t bag = from.bag;
  for (int64_t sample = from.sample; sample < to.sample; ++sample) {
    if (bags.dense_lengths[sample] != 0) visit(bag++, sample, bags.dense_lengths[sample]);
  }
}
template <class Visit>
void for_each_bag(const Bags& bags, Visit visit) {
  for_each_bag(bags, {}, end_of_bags(bags), visit);
}

// The first place behind `from` with so many ids between the two, or the end.
inline BagCursor skip_ids(const Bags& bags, BagCursor from, int64_t ids) {
  const BagCursor end = end_of_bags(bags);
  const int64_t goal = from.id + ids;
  if (goal >= end.id) return end;
  for (; from.id < goal; ++from.sample) {
    const uint32_t length = bags.sparse_lengths != nullptr ? bags.sparse_lengths[from.sample].count
                                                           : bags.dense_lengths[from.sample];
    from.id += length;
    from.bag += length != 0;
  }
  return from;
}

}  // namespace shardrec::compute
