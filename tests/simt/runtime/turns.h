// Whose turn it is: the blocks of a launch, the warps of a block and the lanes of a warp, in the order that
// tests choose. Each lane that can go on does so once, then those of its warp that meet are let go on; a
// warp goes on until all of its lanes wait for other warps or have returned. In random order, warps take
// turns after each such round.
//
// Thread rule: one thread at a time.
#pragma once

#include "block_state.h"

namespace simt {

class Random {
 public:
  explicit Random(uint64_t seed) : state_((seed + 1) * 0x9E3779B97F4A7C15ULL | 1) {}
  unsigned below(unsigned bound) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<unsigned>((state_ >> 32) * bound >> 32);
  }

 private:
  uint64_t state_;
};

class Turns {
 public:
  // Of a launch of so many blocks.
  Turns(Order order, uint64_t seed, unsigned blocks);

  unsigned next_block();
  // The block begins, all of its threads ready.
  void begin(const Block& block);
  // The thread that goes on when the one that ran waits or has returned; null: all have returned.
  Thread* next(Block& block) noexcept;

 private:
  void choose_warp(const Block& block);

  const Order order_;
  Random random_;
  const unsigned blocks_;
  unsigned block_ = 0;
  unsigned step_ = 1;
  // Warps that may be able to go on, in the order of their turns but for the random one.
  unsigned warps_[kMostThreads / kLanes];
  unsigned left_ = 0;
  unsigned turn_ = 0;  // index into warps_
  unsigned warp_ = 0;
  unsigned round_ = 0;  // lanes of the warp whose turn is still to come
};

}  // namespace simt
