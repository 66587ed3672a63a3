// The blocks of a message, by number, as Layout::blocks_of() lists them. Of many ranks, most get nothing of a batch:
// blocks that hold something lie one behind another, and others share what is said of empty ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shardrec::embedding {

// Which of the blocks that hold something a block is, or which of the empty ones stands for it.
class BlockPlace {
 public:
  static BlockPlace present(size_t index) { return BlockPlace(static_cast<uint32_t>(index)); }
  static BlockPlace empty(size_t index) {
    return BlockPlace(static_cast<uint32_t>(index) | kEmpty);
  }
  BlockPlace() = default;

  bool is_empty() const { return (value_ & kEmpty) != 0; }
  size_t index() const { return value_ & ~kEmpty; }

 private:
  static constexpr uint32_t kEmpty = uint32_t{1} << 31;
  explicit BlockPlace(uint32_t value) : value_(value) {}

  uint32_t value_ = kEmpty;
};

template <class Block>
class BlocksOfMessage {
 public:
  BlocksOfMessage(std::span<const BlockPlace> places, std::span<const Block> present,
                  std::span<const Block> empty)
      : places_(places), present_(present), empty_(empty) {}

  size_t size() const { return places_.size(); }
  BlockPlace place(size_t b) const { return places_[b]; }
  const Block& operator[](size_t b) const {
    const BlockPlace place = places_[b];
    return (place.is_empty() ? empty_ : present_)[place.index()];
  }

 private:
  std::span<const BlockPlace> places_;
  std::span<const Block> present_;
  std::span<const Block> empty_;
};

}  // namespace shardrec::embedding
