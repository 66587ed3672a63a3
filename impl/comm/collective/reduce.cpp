#include "comm/collective/reduce.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace shardrec::comm {
namespace {

// Partial results of a block stay in the first-level cache: one block per level of the tree.
constexpr size_t kBlock = 64;

struct Add {
  template <class T>
  T operator()(T a, T b) const noexcept {
    if constexpr (std::is_integral_v<T>) {
      using Wrapping = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Wrapping>(a) + static_cast<Wrapping>(b));
    } else {
      return a + b;
    }
  }
};

// a != a: NaN on either side wins.
struct Min {
  template <class T>
  T operator()(T a, T b) const noexcept {
    return (a < b || a != a) ? a : b;
  }
};

struct Max {
  template <class T>
  T operator()(T a, T b) const noexcept {
    return (a > b || a != a) ? a : b;
  }
};

template <class T>
const T* elements(ConstBytes message) noexcept {
  return static_cast<const T*>(static_cast<const void*>(message.data()));
}

// The tree over inputs, of elements [at, at + count), into out.
template <class T, class Combine>
void tree(std::span<const ConstBytes> inputs, size_t at, size_t count, T* out) noexcept {
  const Combine combine{};
  if (inputs.size() == 1) {
    std::copy_n(elements<T>(inputs[0]) + at, count, out);
    return;
  }
  if (inputs.size() == 2) {
    const T* left = elements<T>(inputs[0]) + at;
    const T* right = elements<T>(inputs[1]) + at;
    for (size_t i = 0; i < count; ++i) out[i] = combine(left[i], right[i]);
    return;
  }
  const size_t half = std::bit_floor(inputs.size() - 1);
  std::array<T, kBlock> right;
  tree<T, Combine>(inputs.first(half), at, count, out);
  tree<T, Combine>(inputs.subspan(half), at, count, right.data());
  for (size_t i = 0; i < count; ++i) out[i] = combine(out[i], right[i]);
}

template <class T, class Combine>
void reduce_blocks(std::span<const ConstBytes> inputs, std::span<T> out) noexcept {
  // Up to two inputs need no partial results.
  const size_t block = inputs.size() <= 2 ? out.size() : kBlock;
  for (size_t at = 0; at < out.size(); at += block) {
    tree<T, Combine>(inputs, at, std::min(block, out.size() - at), out.data() + at);
  }
}

}  // namespace

template <class T>
void reduce_ranks(Reduction reduction, std::span<const ConstBytes> inputs,
                  std::span<T> out) noexcept {
  switch (reduction) {
    case Reduction::kMin:
      return reduce_blocks<T, Min>(inputs, out);
    case Reduction::kMax:
      return reduce_blocks<T, Max>(inputs, out);
    case Reduction::kSum:
      return reduce_blocks<T, Add>(inputs, out);
    case Reduction::kMean:
      break;
  }
  reduce_blocks<T, Add>(inputs, out);
  for (T& value : out) value /= static_cast<T>(inputs.size());
}

template void reduce_ranks(Reduction, std::span<const ConstBytes>, std::span<float>) noexcept;
template void reduce_ranks(Reduction, std::span<const ConstBytes>, std::span<double>) noexcept;
template void reduce_ranks(Reduction, std::span<const ConstBytes>, std::span<int32_t>) noexcept;
template void reduce_ranks(Reduction, std::span<const ConstBytes>, std::span<int64_t>) noexcept;

}  // namespace shardrec::comm
