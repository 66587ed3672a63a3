#include "compute/cuda/host/routing/deduplication.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "compute/id_sections.h"
#include "core/align.h"
#include "core/error.h"

namespace shardrec::compute::cuda::host {
namespace {

constexpr size_t kAlignment = 64;  // of messages in their copy, and of lists side by side

size_t section_bytes(const PlainBlock& block, int64_t unique) {
  return id_section_bytes(static_cast<uint64_t>(block.ids), static_cast<uint64_t>(unique),
                          block.is_64);
}

size_t bytes_of(const DeduplicatedBlocks& message) {
  size_t bytes = 0;
  for (const PlainBlock& block : message.blocks) {
    bytes += block.lengths_bytes + section_bytes(block, 0) + block.weights_bytes;
  }
  return bytes;
}

// At most half of them are taken, of so many that a number of 32 bits says which.
size_t slots_for(int64_t ids) {
  return std::min(std::bit_ceil(2 * static_cast<size_t>(ids)), size_t{1} << 32);
}

// True if any block travels with its different ids only.
bool any_unique(std::span<const DeduplicatedBlocks> messages) {
  return std::ranges::any_of(messages, [](const DeduplicatedBlocks& message) {
    return std::ranges::any_of(message.unique, [](int64_t unique) { return unique != 0; });
  });
}

}  // namespace

Deduplication::Deduplication(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)),
      arguments_(stream_),
      results_(stream_),
      copy_(make_memory(stream_)),
      slots_(make_memory(stream_)),
      lists_(make_memory(stream_)) {}

void Deduplication::run(std::span<const DeduplicatedBlocks> messages) {
  find(messages);
  if (any_unique(messages)) write(messages);
}

void Deduplication::find(std::span<const DeduplicatedBlocks> messages) {
  for (const DeduplicatedBlocks& message : messages) std::ranges::fill(message.unique, 0);
  list(messages);
  if (candidates_.empty()) return;
  find_repeats(messages);
  take_results();
}

void Deduplication::write_found(std::span<const DeduplicatedBlocks> messages) {
  if (!any_unique(messages)) return;
  list(messages);
  find_repeats(messages);
  write(messages);
}

void Deduplication::list(std::span<const DeduplicatedBlocks> messages) {
  candidates_.clear();
  copy_at_.clear();
  copy_bytes_ = 0;
  slot_count_ = 0;
  for (size_t m = 0; m < messages.size(); ++m) {
    const DeduplicatedBlocks& message = messages[m];
    copy_at_.push_back(copy_bytes_);
    const size_t candidates_before = candidates_.size();
    size_t at = copy_bytes_;
    for (size_t b = 0; b < message.blocks.size(); ++b) {
      const PlainBlock& block = message.blocks[b];
      at += block.lengths_bytes;
      if (const int64_t most = most_unique(block.ids, block.is_64); most != 0) {
        candidates_.push_back({.message = m,
                               .block = &block,
                               .unique = &message.unique[b],
                               .ids_at = at,
                               .slots = slots_for(block.ids),
                               .most_unique = most});
        slot_count_ += candidates_.back().slots;
      }
      at += section_bytes(block, 0) + block.weights_bytes;
    }
    if (candidates_.size() != candidates_before) copy_bytes_ = core::align_up(at, kAlignment);
  }
}

void Deduplication::find_repeats(std::span<const DeduplicatedBlocks> messages) {
  std::byte* const copy = copy_.resize(copy_bytes_);
  size_t last = messages.size();
  for (const Candidate& candidate : candidates_) {
    if (candidate.message == last) continue;
    last = candidate.message;
    stream_->copy_kept(copy + copy_at_[last], messages[last].data, bytes_of(messages[last]));
  }

  uint32_t* slots = slots_.resize_as<uint32_t>(slot_count_).data();
  require(table().fill(stream_->handle(), slots, 0xFF, slot_count_ * sizeof(uint32_t)),
          "empty hash tables on device ", stream_->device());
  size_t ids = 0;
  for (const Candidate& candidate : candidates_) {
    ids += static_cast<size_t>(candidate.block->ids);
  }
  const size_t list = core::align_up(ids, kAlignment);
  uint32_t* places = lists_.resize_as<uint32_t>(2 * list).data();
  uint32_t* firsts = places + list;
  repeated_.clear();
  tiles_.clear();
  for (const Candidate& candidate : candidates_) {
    const PlainBlock& block = *candidate.block;
    repeated_.push_back({.ids = copy + candidate.ids_at,
                         .ids_are_64 = block.is_64,
                         .shift = 64 - std::countr_zero(candidate.slots),
                         .last_slot = static_cast<uint32_t>(candidate.slots - 1),
                         .slots = slots,
                         .count = block.ids,
                         .places = places,
                         .firsts_before = firsts});
    tiles_.add(block.ids);
    slots += candidate.slots;
    places += block.ids;
    firsts += block.ids;
  }
  const std::span<const shardrec_cuda_repeated_ids> blocks(repeated_);
  arguments_.begin(Arguments::bytes_of<shardrec_cuda_repeated_ids>(blocks.size()) + tiles_.bytes());
  uint64_t* const unique = results_.begin<uint64_t>(blocks.size(), 0, scan_bytes(tiles_.count()));
  const shardrec_cuda_repeat_search job{.blocks = arguments_.add(blocks),
                                        .tiles = tiles_.add_to(arguments_),
                                        .scan = scan_at(results_.work()),
                                        .unique = unique};
  arguments_.send();
  require(table().find_repeats(stream_->handle(), &job), "look for ids that repeat on device ",
          stream_->device());
}

void Deduplication::take_results() {
  const auto found = results_.fetch<uint64_t>();
  for (size_t c = 0; c < candidates_.size(); ++c) {
    const Candidate& candidate = candidates_[c];
    const auto unique = static_cast<int64_t>(found[c]);
    if (unique <= candidate.most_unique) *candidate.unique = unique;
  }
}

void Deduplication::write(std::span<const DeduplicatedBlocks> messages) {
  const std::byte* const copy = static_cast<const std::byte*>(copy_.data());
  dictionaries_.clear();
  moved_.clear();
  tiles_.clear();
  word_tiles_.clear();
  size_t candidate = 0;
  for (size_t m = 0; m < messages.size(); ++m) {
    write_message(messages[m], copy + copy_at_[m], candidate);
  }
  for (const shardrec_cuda_moved_words& words : moved_) word_tiles_.add(words.count);
  const std::span<const shardrec_cuda_id_dictionary> dictionaries(dictionaries_);
  const std::span<const shardrec_cuda_moved_words> moved(moved_);
  arguments_.begin(Arguments::bytes_of<shardrec_cuda_id_dictionary>(dictionaries.size()) +
                   tiles_.bytes() + Arguments::bytes_of<shardrec_cuda_moved_words>(moved.size()) +
                   word_tiles_.bytes());
  const shardrec_cuda_dictionary_writing job{.dictionaries = arguments_.add(dictionaries),
                                             .id_tiles = tiles_.add_to(arguments_),
                                             .moved = arguments_.add(moved),
                                             .word_tiles = word_tiles_.add_to(arguments_)};
  arguments_.send();
  require(table().write_dictionaries(stream_->handle(), &job),
          "write ids that repeat once on device ", stream_->device());
}

void Deduplication::write_message(const DeduplicatedBlocks& message, const std::byte* copy,
                                  size_t& candidate) {
  const std::byte* from = copy;
  std::byte* to = message.data;
  bool is_moved = false;
  const auto pass = [&](size_t bytes) {
    if (is_moved) move(to, from, bytes);
    from += bytes;
    to += bytes;
  };
  for (size_t b = 0; b < message.blocks.size(); ++b) {
    const PlainBlock& block = message.blocks[b];
    const int64_t unique = message.unique[b];
    pass(block.lengths_bytes);
    if (unique == 0) {
      pass(section_bytes(block, 0));
    } else {
      const shardrec_cuda_repeated_ids& repeated = repeated_[candidate];
      const auto count = static_cast<uint64_t>(unique);
      dictionaries_.push_back({.ids = repeated.ids,
                               .ids_are_64 = repeated.ids_are_64,
                               .code_bytes = static_cast<int32_t>(code_bytes(count)),
                               .count = repeated.count,
                               .places = repeated.places,
                               .firsts_before = repeated.firsts_before,
                               .unique = unique,
                               .unique_ids = to,
                               .codes = to + code_offset(count, block.is_64)});
      tiles_.add(repeated.count);
      from += section_bytes(block, 0);
      to += section_bytes(block, unique);
      is_moved = true;
    }
    if (candidate < candidates_.size() && candidates_[candidate].block == &block) ++candidate;
    pass(block.weights_bytes);
  }
}

// Sections behind one another are moved as one.
void Deduplication::move(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes == 0) return;
  auto* const words_to = static_cast<uint64_t*>(static_cast<void*>(to));
  const auto* const words_from = static_cast<const uint64_t*>(static_cast<const void*>(from));
  const auto count = static_cast<int64_t>(bytes / sizeof(uint64_t));
  if (!moved_.empty()) {
    shardrec_cuda_moved_words& last = moved_.back();
    if (last.to + last.count == words_to && last.from + last.count == words_from) {
      last.count += count;
      return;
    }
  }
  moved_.push_back({.from = words_from, .to = words_to, .count = count});
}

}  // namespace shardrec::compute::cuda::host
