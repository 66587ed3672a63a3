// The blocks of a message, by number, as Layout::blocks_of() lists them. Of many ranks, most get nothing of a batch:
// blocks that hold something lie one behind another, and others share what is said of empty ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shardrec::embedding {

template <class Block>
class BlocksOfMessage {
 public:
  // places: of each block, where it is among `blocks`, the first `empty` of which stand for those that hold nothing.
  BlocksOfMessage(std::span<const uint32_t> places, std::span<const Block> blocks, size_t empty)
      : places_(places), blocks_(blocks), empty_(empty) {}

  size_t size() const { return places_.size(); }
  const Block& operator[](size_t b) const { return blocks_[places_[b]]; }
  bool holds_nothing(size_t b) const { return places_[b] < empty_; }
  // Of a block that holds something, its number among those of all messages.
  size_t number(size_t b) const { return places_[b] - empty_; }

 private:
  std::span<const uint32_t> places_;
  std::span<const Block> blocks_;
  size_t empty_;
};

}  // namespace shardrec::embedding
