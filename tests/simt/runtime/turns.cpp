#include "turns.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace simt {
namespace {

// The i-th lowest bit.
unsigned bit_at(unsigned bits, unsigned i) {
  while (i-- != 0) bits &= bits - 1;
  return static_cast<unsigned>(std::countr_zero(bits));
}

// No warp can go on: whether all threads have returned. Else they are at one barrier, and are let go on.
bool all_returned(Block& block) {
  unsigned returned = 0;
  const Thread* waits = nullptr;
  for (unsigned i = 0; i < block.threads; ++i) {
    const Thread& thread = block.all[i];
    if (thread.state == ThreadState::kReturned) {
      ++returned;
      continue;
    }
    if (waits != nullptr && (waits->where.line() != thread.where.line() ||
                             waits->where.column() != thread.where.column())) {
      stop_block(block, "threads of a block wait at different barriers");
    }
    waits = &thread;
  }
  if (waits == nullptr) return true;
  if (returned != 0) stop_block(block, "threads wait at a barrier that others do not reach");
  for (unsigned i = 0; i < block.threads; ++i) block.all[i].state = ThreadState::kReady;
  for (unsigned warp = 0; warp * kLanes < block.threads; ++warp) {
    block.warps[warp].ready = block.warps[warp].lanes;
  }
  ++block.fibers->barrier.round;
  return false;
}

}  // namespace

Turns::Turns(Order order, uint64_t seed, unsigned blocks)
    : order_(order), random_(seed), blocks_(blocks) {
  if (order_ == Order::kDescending) {
    block_ = blocks - 1;
    step_ = blocks - 1;
  } else if (order_ == Order::kRandom) {  // from anywhere on, by steps that come to each
    block_ = random_.below(blocks);
    step_ = random_.below(blocks);
  }
  while (std::gcd(step_, blocks) != 1) ++step_;
}

unsigned Turns::next_block() {
  const unsigned block = block_;
  block_ = static_cast<unsigned>((uint64_t{block_} + step_) % blocks_);
  return block;
}

void Turns::begin(const Block& block) {
  left_ = (block.threads + kLanes - 1) / kLanes;
  for (unsigned i = 0; i < left_; ++i) {
    warps_[i] = order_ == Order::kDescending ? left_ - 1 - i : i;
  }
  turn_ = 0;
  choose_warp(block);
}

void Turns::choose_warp(const Block& block) {
  if (order_ == Order::kRandom) turn_ = random_.below(left_);
  warp_ = warps_[turn_];
  round_ = block.warps[warp_].ready;
}

Thread* Turns::next(Block& block) noexcept {
  while (round_ == 0) {
    if (complete_operations(block, warp_)) {
      if (order_ == Order::kRandom) {
        choose_warp(block);
      } else {
        round_ = block.warps[warp_].ready;
      }
      continue;
    }
    if (block.warps[warp_].waiting != 0) {
      stop_block(block, "lanes of a warp wait for lanes of their mask that wait elsewhere");
    }
    // The warp waits at a barrier or has returned.
    if (order_ == Order::kRandom) {
      warps_[turn_] = warps_[--left_];
    } else {
      ++turn_;
      --left_;
    }
    if (left_ != 0) {
      choose_warp(block);
      continue;
    }
    if (all_returned(block)) return nullptr;
    begin(block);
  }
  const unsigned lane =
      order_ == Order::kAscending ? static_cast<unsigned>(std::countr_zero(round_))
      : order_ == Order::kDescending
          ? 31U - static_cast<unsigned>(std::countl_zero(round_))
          : bit_at(round_, random_.below(static_cast<unsigned>(std::popcount(round_))));
  round_ &= ~(1U << lane);
  return &block.thread(warp_, lane);
}

}  // namespace simt
