#include "compute/cpu/routing/routing_dictionary.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "compute/id_sections.h"
#include "core/align.h"

namespace shardrec::compute::cpu {
namespace {

constexpr uint32_t kEmpty = UINT32_MAX;
// Slots of the hash table of a block: at most half of them are taken.
size_t slots_for(int64_t ids) { return std::bit_ceil(static_cast<size_t>(2 * ids)); }

// Scratch for a block of so many ids: hash table, codes, positions of first occurrences.
size_t scratch_bytes(int64_t ids) {
  return (slots_for(ids) + 2 * static_cast<size_t>(ids)) * sizeof(uint32_t);
}

size_t section_bytes(const PlainBlock& block, int64_t unique) {
  return id_section_bytes(static_cast<uint64_t>(block.ids), static_cast<uint64_t>(unique),
                          block.is_64);
}

struct Dictionary {
  int64_t unique = 0;  // 0: not smaller
  const uint32_t* codes = nullptr;
  const uint32_t* firsts = nullptr;  // positions of the first occurrences, in order
};

// Not inlined: its loop takes all registers that there are.
template <class WireId>
[[gnu::noinline]] Dictionary look_for(const WireId* ids, const PlainBlock& block,
                                      std::byte* scratch) {
  const int64_t most = most_unique(block.ids, block.is_64);
  if (most == 0) return {};
  const int64_t count = block.ids;
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

template <class Code>
void write_codes(const uint32_t* codes, int64_t count, std::byte* out) {
  for (int64_t i = 0; i < count; ++i) {
    const auto code = static_cast<Code>(codes[i]);
    std::memcpy(out + static_cast<size_t>(i) * sizeof code, &code, sizeof code);
  }
}

// Writes the different ids and the codes over the plain ids, zeros where these end between multiples of 8
// bytes.
template <class WireId>
void write_dictionary(const Dictionary& dictionary, std::byte* ids, int64_t count) {
  // Firsts rise, and the k-th is at least k: nothing is written before it was read.
  for (int64_t u = 0; u < dictionary.unique; ++u) {
    std::memcpy(ids + static_cast<size_t>(u) * sizeof(WireId),
                ids + dictionary.firsts[u] * sizeof(WireId), sizeof(WireId));
  }
  const auto unique = static_cast<uint64_t>(dictionary.unique);
  const size_t offset = code_offset(unique, sizeof(WireId) == 8);
  std::byte* codes = ids + offset;
  const auto fill_up = [&](size_t begin, size_t end) {
    std::fill(ids + begin, ids + end, std::byte{0});
  };
  fill_up(unique * sizeof(WireId), offset);
  fill_up(offset + static_cast<size_t>(count) * code_bytes(unique),
          id_section_bytes(static_cast<uint64_t>(count), unique, sizeof(WireId) == 8));
  switch (code_bytes(unique)) {
    case 1:
      return write_codes<uint8_t>(dictionary.codes, count, codes);
    case 2:
      return write_codes<uint16_t>(dictionary.codes, count, codes);
    default:
      return write_codes<uint32_t>(dictionary.codes, count, codes);
  }
}

void deduplicate(const DeduplicatedBlocks& message, std::byte* scratch) {
  std::byte* to = message.data;
  const std::byte* from = to;
  const auto move = [&](size_t bytes) {
    if (to != from && bytes != 0) std::memmove(to, from, bytes);
    from += bytes;
    to += bytes;
  };
  for (size_t b = 0; b < message.blocks.size(); ++b) {
    const PlainBlock& block = message.blocks[b];
    move(block.lengths_bytes);
    const size_t plain = section_bytes(block, 0);
    const auto rewrite = [&](auto id) -> int64_t {
      using WireId = decltype(id);
      const auto* ids = static_cast<const WireId*>(static_cast<const void*>(from));
      const Dictionary dictionary = look_for(ids, block, scratch);
      if (dictionary.unique == 0) return 0;
      std::memmove(to, from, plain);
      write_dictionary<WireId>(dictionary, to, block.ids);
      return dictionary.unique;
    };
    int64_t& unique = message.unique[b];
    unique = block.is_64 ? rewrite(int64_t{}) : rewrite(int32_t{});
    if (unique == 0) {
      move(plain);
    } else {
      from += plain;
      to += section_bytes(block, unique);
    }
    move(block.weights_bytes);
  }
}

}  // namespace

void deduplicate_ids(std::span<const DeduplicatedBlocks> messages, const Context& context) {
  size_t scratch = 0;
  for (const DeduplicatedBlocks& message : messages) {
    for (const PlainBlock& block : message.blocks) {
      scratch = std::max(scratch, scratch_bytes(block.ids));
    }
  }
  scratch = core::align_up(scratch, 64);
  const int64_t lanes = std::min<int64_t>(context.threads.count(), std::ssize(messages));
  std::byte* memory = context.work.resize(scratch * static_cast<size_t>(lanes));
  context.threads.parallel_for(lanes, 1, [&](int64_t first, int64_t last) {
    for (int64_t lane = first; lane < last; ++lane) {
      for (int64_t m = lane; m < std::ssize(messages); m += lanes) {
        deduplicate(messages[static_cast<size_t>(m)], memory + static_cast<size_t>(lane) * scratch);
      }
    }
  });
}

}  // namespace shardrec::compute::cpu
