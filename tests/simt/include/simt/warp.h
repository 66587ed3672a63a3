// The barrier of a block and the operations of a warp.
//
// Stricter than CUDA: a mask may not name a lane that has returned or that the block has not, all
// threads of a block meet at one and the same __syncthreads(), and shuffles read lanes of their mask
// only. Whoever breaks a rule ends the process, which then says where each thread of the block is.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <source_location>
#include <type_traits>

#include "simt/language.h"

namespace simt {

enum class WarpOperation : unsigned char {
  kSync,
  kShuffle,
  kShuffleUp,
  kShuffleDown,
  kShuffleXor,
  kBallot,
  kAny,
  kAll,
  kMatchAny,
  kReduceAdd,
  kReduceMin,
  kReduceMax,
};

// Waits for the lanes of the mask and returns the operation's result for the calling lane. `source`
// is the lane that a shuffle reads.
uint64_t meet_warp(WarpOperation operation, unsigned mask, uint64_t value, unsigned source,
                   const std::source_location& where) noexcept;
void meet_block(const std::source_location& where) noexcept;
[[noreturn]] void stop(const char* sentence, const std::source_location& where) noexcept;

// What CUDA's overloads of shuffles take.
template <class T>
concept Shuffled = std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8);

template <class T>
  requires(sizeof(T) == 4 || sizeof(T) == 8)
uint64_t bits_of(T value) noexcept {
  if constexpr (sizeof(T) == 4) {
    return std::bit_cast<uint32_t>(value);
  } else {
    return std::bit_cast<uint64_t>(value);
  }
}

template <class T>
T from_bits(uint64_t bits) noexcept {
  if constexpr (sizeof(T) == 4) {
    return std::bit_cast<T>(static_cast<uint32_t>(bits));
  } else {
    return std::bit_cast<T>(bits);
  }
}

// The lanes of a segment of `width` lanes: a shuffle reads at most its last.
struct Segment {
  Segment(int width, const std::source_location& where) noexcept : lane(thread_index() % 32) {
    if (width < 1 || width > 32 || !std::has_single_bit(static_cast<unsigned>(width))) {
      stop("the width of a shuffle is a power of two up to 32", where);
    }
    first = lane & ~(static_cast<unsigned>(width) - 1);
    last = first + static_cast<unsigned>(width) - 1;
  }
  unsigned lane, first, last;
};

template <Shuffled T>
T shuffle(WarpOperation operation, unsigned mask, T value, unsigned source,
          const std::source_location& where) noexcept {
  return from_bits<T>(meet_warp(operation, mask, bits_of(value), source, where));
}

}  // namespace simt

inline void __syncthreads(std::source_location where = std::source_location::current()) noexcept {
  simt::meet_block(where);
}

inline void __syncwarp(unsigned mask = 0xFFFFFFFF,
                       std::source_location where = std::source_location::current()) noexcept {
  simt::meet_warp(simt::WarpOperation::kSync, mask, 0, 0, where);
}

template <simt::Shuffled T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32,
              std::source_location where = std::source_location::current()) noexcept {
  const simt::Segment segment(width, where);
  const unsigned lane =
      segment.first | (static_cast<unsigned>(source) % static_cast<unsigned>(width));
  return simt::shuffle(simt::WarpOperation::kShuffle, mask, value, lane, where);
}

// Lanes outside of the segment: the own value. As PTX says, five bits of the distance count.
template <simt::Shuffled T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                 std::source_location where = std::source_location::current()) noexcept {
  const simt::Segment segment(width, where);
  const unsigned lane = segment.lane - (delta & 31);
  const bool inside = (delta & 31) <= segment.lane && lane >= segment.first;
  return simt::shuffle(simt::WarpOperation::kShuffleUp, mask, value, inside ? lane : segment.lane,
                       where);
}

template <simt::Shuffled T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                   std::source_location where = std::source_location::current()) noexcept {
  const simt::Segment segment(width, where);
  const unsigned lane = segment.lane + (delta & 31);
  return simt::shuffle(simt::WarpOperation::kShuffleDown, mask, value,
                       lane <= segment.last ? lane : segment.lane, where);
}

// A lane of an earlier segment is read, of a later one it is not: the own value.
template <simt::Shuffled T>
T __shfl_xor_sync(unsigned mask, T value, int distance, int width = 32,
                  std::source_location where = std::source_location::current()) noexcept {
  const simt::Segment segment(width, where);
  const unsigned lane = segment.lane ^ (static_cast<unsigned>(distance) & 31);
  return simt::shuffle(simt::WarpOperation::kShuffleXor, mask, value,
                       lane <= segment.last ? lane : segment.lane, where);
}

inline unsigned __ballot_sync(
    unsigned mask, int predicate,
    std::source_location where = std::source_location::current()) noexcept {
  return static_cast<unsigned>(
      simt::meet_warp(simt::WarpOperation::kBallot, mask, predicate != 0 ? 1 : 0, 0, where));
}

inline int __any_sync(unsigned mask, int predicate,
                      std::source_location where = std::source_location::current()) noexcept {
  return static_cast<int>(
      simt::meet_warp(simt::WarpOperation::kAny, mask, predicate != 0 ? 1 : 0, 0, where));
}

inline int __all_sync(unsigned mask, int predicate,
                      std::source_location where = std::source_location::current()) noexcept {
  return static_cast<int>(
      simt::meet_warp(simt::WarpOperation::kAll, mask, predicate != 0 ? 1 : 0, 0, where));
}

// The lanes of the mask whose value has the same bits.
template <simt::Shuffled T>
unsigned __match_any_sync(unsigned mask, T value,
                          std::source_location where = std::source_location::current()) noexcept {
  return static_cast<unsigned>(
      simt::meet_warp(simt::WarpOperation::kMatchAny, mask, simt::bits_of(value), 0, where));
}

// CUDA has them for int too, which would be others: no implicit conversion here.
inline unsigned __reduce_add_sync(
    unsigned mask, std::same_as<unsigned> auto value,
    std::source_location where = std::source_location::current()) noexcept {
  return static_cast<unsigned>(
      simt::meet_warp(simt::WarpOperation::kReduceAdd, mask, value, 0, where));
}

inline unsigned __reduce_min_sync(
    unsigned mask, std::same_as<unsigned> auto value,
    std::source_location where = std::source_location::current()) noexcept {
  return static_cast<unsigned>(
      simt::meet_warp(simt::WarpOperation::kReduceMin, mask, value, 0, where));
}

inline unsigned __reduce_max_sync(
    unsigned mask, std::same_as<unsigned> auto value,
    std::source_location where = std::source_location::current()) noexcept {
  return static_cast<unsigned>(
      simt::meet_warp(simt::WarpOperation::kReduceMax, mask, value, 0, where));
}

// Ends the process: a device would go on for the other threads, and tell the host later.
[[noreturn]] inline void __trap(
    std::source_location where = std::source_location::current()) noexcept {
  simt::stop("a thread called __trap()", where);
}
