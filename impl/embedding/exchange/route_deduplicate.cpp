// The part of routing that spares bytes: where a block repeats ids, each different one travels
// once, and a code of 1, 2 or 4 bytes per id says which it is.
#include <algorithm>
#include <bit>
#include <cstring>

#include "embedding/exchange/route.h"

namespace shardrec::embedding {
namespace {

constexpr uint32_t kEmpty = UINT32_MAX;
// Below this there is next to nothing to win.
constexpr int64_t kFewest = 16;

// Slots of the hash table of a block: at most half of them are taken.
size_t slots_for(int64_t ids) { return std::bit_ceil(static_cast<size_t>(2 * ids)); }

// Scratch for a block of so many ids: hash table, codes, positions of first occurrences.
size_t scratch_bytes(int64_t ids) {
  return (slots_for(ids) + 2 * static_cast<size_t>(ids)) * sizeof(uint32_t);
}

// The most different ids with which a dictionary is smaller than the plain ids.
int64_t most_unique(int64_t ids, bool ids_are_64) {
  const auto smaller = [&](int64_t unique) {
    BlockRecord coded{.ids = static_cast<uint64_t>(ids)};
    const size_t plain = ids_bytes(coded, ids_are_64);
    coded.unique = static_cast<uint32_t>(unique);
    return ids_bytes(coded, ids_are_64) < plain;
  };
  int64_t most = 0;
  // Within a width of codes, bytes rise with the number of different ids.
  int64_t low = 0;
  for (const int64_t up_to : {int64_t{256}, int64_t{65536}, ids}) {
    int64_t first = low + 1;
    int64_t last = std::min(up_to, ids);
    low = up_to;
    if (first > last || !smaller(first)) continue;
    while (first < last) {
      const int64_t middle = first + (last - first + 1) / 2;
      if (smaller(middle)) {
        first = middle;
      } else {
        last = middle - 1;
      }
    }
    most = first;
  }
  return most;
}

struct Dictionary {
  int64_t unique = 0;  // 0: not smaller
  const uint32_t* codes = nullptr;
  const uint32_t* firsts = nullptr;  // positions of the first occurrences, in order
};

template <class WireId>
Dictionary look_for(const WireId* ids, int64_t count, std::byte* scratch) {
  constexpr bool kWide = sizeof(WireId) == 8;
  const int64_t most = most_unique(count, kWide);
  if (most == 0) return {};
  const size_t slots = slots_for(count);
  const int shift = 64 - std::countr_zero(slots);
  auto* table = static_cast<uint32_t*>(static_cast<void*>(scratch));
  uint32_t* codes = table + slots;
  uint32_t* firsts = codes + count;
  std::fill(table, table + slots, kEmpty);
  int64_t unique = 0;
  for (int64_t i = 0; i < count; ++i) {
    // Fibonacci hashing (Knuth, volume 3, 6.4): the multiplier is 2^64 / golden ratio.
    size_t slot = static_cast<uint64_t>(ids[i]) * 0x9E3779B97F4A7C15U >> shift;
    while (table[slot] != kEmpty && ids[firsts[table[slot]]] != ids[i]) {
      slot = (slot + 1) & (slots - 1);
    }
    if (table[slot] == kEmpty) {
      if (unique == most) return {};
      table[slot] = static_cast<uint32_t>(unique);
      firsts[unique++] = static_cast<uint32_t>(i);
    }
    codes[i] = table[slot];
  }
  return {unique, codes, firsts};
}

// Writes the different ids and the codes over the plain ids; returns where the codes stand.
template <class WireId>
std::byte* write_dictionary(const Dictionary& dictionary, std::byte* ids, int64_t count) {
  // Firsts rise, and the k-th is at least k: nothing is written before it was read.
  for (int64_t u = 0; u < dictionary.unique; ++u) {
    std::memcpy(ids + static_cast<size_t>(u) * sizeof(WireId),
                ids + dictionary.firsts[u] * sizeof(WireId), sizeof(WireId));
  }
  std::byte* codes = ids + align_up(static_cast<size_t>(dictionary.unique) * sizeof(WireId), 8);
  const size_t bytes = code_bytes(static_cast<uint64_t>(dictionary.unique));
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t code = dictionary.codes[i];
    if (bytes == 1) {
      codes[i] = static_cast<std::byte>(code);
    } else if (bytes == 2) {
      const auto narrow = static_cast<uint16_t>(code);
      std::memcpy(codes + 2 * i, &narrow, 2);
    } else {
      std::memcpy(codes + 4 * i, &code, 4);
    }
  }
  return codes;
}

}  // namespace

void RoutedBatch::deduplicate(std::byte* base, bool weighted, core::Threads& threads) {
  const int ranks = layout_.ranks();
  size_t scratch = 0;
  for (const SentBlock& block : blocks_) scratch = std::max(scratch, scratch_bytes(block.ids));
  std::byte* memory = dictionary_memory_.resize(scratch * static_cast<size_t>(threads.count()));
  // One owner's message at a time on each thread.
  const int64_t lanes = std::min<int64_t>(threads.count(), ranks);
  threads.parallel_for(lanes, 1, [&](int64_t first, int64_t last) {
    for (int64_t lane = first; lane < last; ++lane) {
      for (int owner = static_cast<int>(lane); owner < ranks; owner += static_cast<int>(lanes)) {
        if (owner == layout_.rank()) continue;
        std::byte* message = base + message_offsets_[static_cast<size_t>(owner)];
        messages_[static_cast<size_t>(owner)] = {
            message, deduplicate_message(owner, message, weighted,
                                         memory + static_cast<size_t>(lane) * scratch)};
      }
    }
  });
}

// Moves each block to the end of the one before it, and returns the new size.
size_t RoutedBatch::deduplicate_message(int owner, std::byte* message, bool weighted,
                                        std::byte* scratch) {
  const auto blocks = layout_.blocks_of(owner);
  std::byte* records = message + align_up(sizeof(InputHeader), 8);
  std::byte* to = records + blocks.size() * sizeof(BlockRecord);
  const std::byte* from = to;
  const auto move = [&](size_t bytes) {
    std::byte* moved = to;
    if (to != from && bytes != 0) std::memmove(to, from, bytes);
    from += bytes;
    to += bytes;
    return moved;
  };
  for (size_t b = 0; b < blocks.size(); ++b, records += sizeof(BlockRecord)) {
    SentBlock& sent = blocks_[first_block_[static_cast<size_t>(owner)] + b];
    const Part& part = layout_.parts()[static_cast<size_t>(blocks[b].part)];
    const bool wide = layout_.ids_are_64(part.table);
    BlockRecord record;
    std::memcpy(&record, records, sizeof record);
    const std::byte* lengths = move(lengths_bytes(record));
    if (record.sparse != 0) {
      sent.sparse_lengths = static_cast<const SparseLength*>(static_cast<const void*>(lengths));
    } else {
      sent.dense_lengths = static_cast<const uint32_t*>(static_cast<const void*>(lengths));
    }
    const size_t plain = ids_bytes(record, wide);
    const auto look = [&](auto id) {
      using WireId = decltype(id);
      const auto* ids = static_cast<const WireId*>(static_cast<const void*>(from));
      return look_for(ids, sent.ids, scratch);
    };
    const Dictionary dictionary = sent.ids < kFewest ? Dictionary{}
                                  : wide             ? look(int64_t{})
                                                     : look(int32_t{});
    if (dictionary.unique == 0) {
      move(plain);
    } else {
      record.unique = static_cast<uint32_t>(dictionary.unique);
      std::memcpy(records, &record, sizeof record);
      std::memmove(to, from, plain);
      sent.unique = dictionary.unique;
      sent.codes = wide ? write_dictionary<int64_t>(dictionary, to, sent.ids)
                        : write_dictionary<int32_t>(dictionary, to, sent.ids);
      from += plain;
      to += ids_bytes(record, wide);
    }
    move(weights_bytes(record, weighted && !blocks[b].sequence));
  }
  return static_cast<size_t>(to - message);
}

}  // namespace shardrec::embedding
