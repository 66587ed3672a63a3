// A list of arrays of elements, such as the parameters of a model, seen as one range of elements:
// work is cut among threads by elements, whatever the sizes of the arrays, and sums are taken over
// blocks that depend on the sizes only. Not thread-safe while arrays are added.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardrec::dense {

// One array: elements [begin, begin + size) of all. Its blocks, of kBlockElements elements each, the
// last one shorter, are blocks [first_block, first_block of the next array) of all.
struct Extent {
  int64_t begin = 0;
  int64_t size = 0;
  int64_t first_block = 0;
};

inline constexpr int64_t kBlockElements = 16384;

// Room for more of a vector, at least doubled: adding one by one takes linear time.
template <class T>
void reserve_more(std::vector<T>& vector, size_t more) {
  const size_t count = vector.size() + more;
  if (count > vector.capacity()) vector.reserve(std::max(count, 2 * vector.capacity()));
}

class Extents {
 public:
  // The next `arrays` calls of add() do not throw.
  void reserve(size_t arrays) { reserve_more(extents_, arrays); }
  // Returns the array's index.
  size_t add(int64_t size) {
    extents_.push_back({.begin = elements_, .size = size, .first_block = blocks_});
    elements_ += size;
    blocks_ += blocks_of(size);
    return extents_.size() - 1;
  }

  size_t count() const noexcept { return extents_.size(); }
  const Extent& operator[](size_t index) const noexcept { return extents_[index]; }
  int64_t elements() const noexcept { return elements_; }
  int64_t blocks() const noexcept { return blocks_; }
  static int64_t blocks_of(int64_t size) noexcept {
    return (size + kBlockElements - 1) / kBlockElements;
  }

  // Calls visit(array, first, last) for each array's elements [first, last) among elements
  // [begin, end) of all, ascending.
  template <class Visit>
  void for_elements(int64_t begin, int64_t end, const Visit& visit) const {
    if (begin >= end) return;
    const auto after = std::upper_bound(
        extents_.begin(), extents_.end(), begin,
        [](int64_t element, const Extent& extent) { return element < extent.begin; });
    for (auto at = static_cast<size_t>(after - extents_.begin()) - 1; at < extents_.size(); ++at) {
      const Extent& extent = extents_[at];
      if (extent.begin >= end) return;
      const int64_t first = std::max(begin - extent.begin, int64_t{0});
      const int64_t last = std::min(end - extent.begin, extent.size);
      if (first < last) visit(at, first, last);
    }
  }

  // Calls visit(array, block, first, last) for the blocks whose first element is among elements
  // [begin, end) of all: block is numbered among all, [first, last) are elements of the array.
  template <class Visit>
  void for_blocks(int64_t begin, int64_t end, const Visit& visit) const {
    for_elements(begin, end, [&](size_t array, int64_t from, int64_t to) {
      const Extent& extent = extents_[array];
      for (int64_t block = blocks_of(from); block * kBlockElements < to; ++block) {
        visit(array, extent.first_block + block, block * kBlockElements,
              std::min((block + 1) * kBlockElements, extent.size));
      }
    });
  }

 private:
  std::vector<Extent> extents_;
  int64_t elements_ = 0;
  int64_t blocks_ = 0;
};

}  // namespace shardrec::dense
