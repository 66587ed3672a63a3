// Operations of a warp: a lane waits for the others of its mask; the last to come lets all go on, each
// with its result.
#include "simt/warp.h"

#include <algorithm>

#include "block_state.h"
#include "sanitizers.h"

namespace simt {
namespace {

bool is_shuffle(WarpOperation operation) {
  return operation == WarpOperation::kShuffle || operation == WarpOperation::kShuffleUp ||
         operation == WarpOperation::kShuffleDown || operation == WarpOperation::kShuffleXor;
}

bool names(unsigned mask, unsigned lane) { return (mask >> lane & 1) != 0; }

bool has_met(const Block& block, const Thread& thread) noexcept {
  const Thread* warp = &block.all[thread.index / kLanes * kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (!names(thread.mask, lane)) continue;
    const Thread& other = warp[lane];
    if (other.state == ThreadState::kReturned) {
      stop_block(block, "a mask names a lane that has returned");
    }
    if (other.state != ThreadState::kInWarpOperation || other.mask != thread.mask) return false;
    if (other.operation != thread.operation) {
      stop_block(block, "lanes of one mask meet in different operations");
    }
  }
  return true;
}

// Of the lanes that have met, for the lane `own` of them.
uint64_t result_of(const Thread* warp, const Thread& own) noexcept {
  switch (own.operation) {
    case WarpOperation::kSync:
      return 0;
    case WarpOperation::kShuffle:
    case WarpOperation::kShuffleUp:
    case WarpOperation::kShuffleDown:
    case WarpOperation::kShuffleXor:
      return warp[own.source].value;
    default:
      break;
  }
  uint64_t ballot = 0;
  uint64_t matches = 0;
  uint64_t sum = 0;
  uint64_t least = UINT64_MAX;
  uint64_t most = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (!names(own.mask, lane)) continue;
    const uint64_t value = warp[lane].value;
    if (value != 0) ballot |= uint64_t{1} << lane;
    if (value == own.value) matches |= uint64_t{1} << lane;
    sum += value;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  switch (own.operation) {
    case WarpOperation::kBallot:
      return ballot;
    case WarpOperation::kAny:
      return ballot != 0 ? 1 : 0;
    case WarpOperation::kAll:
      return ballot == own.mask ? 1 : 0;
    case WarpOperation::kMatchAny:
      return matches;
    case WarpOperation::kReduceAdd:
      return sum & 0xFFFFFFFF;
    case WarpOperation::kReduceMin:
      return least;
    default:
      return most;
  }
}

}  // namespace

bool complete_operations(Block& block, unsigned warp) noexcept {
  Thread* threads = &block.all[warp * kLanes];
  const unsigned lanes = std::min(kLanes, block.threads - warp * kLanes);
  bool any = false;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    const Thread& first = threads[lane];
    if (first.state != ThreadState::kInWarpOperation || !has_met(block, first)) continue;
    const unsigned mask = first.mask;
    for (unsigned i = lane; i < lanes; ++i) {
      if (names(mask, i)) threads[i].result = result_of(threads, threads[i]);
    }
    for (unsigned i = lane; i < lanes; ++i) {
      if (names(mask, i)) threads[i].state = ThreadState::kReady;
    }
    if constexpr (kThreadSanitizer) ++block.fibers->warps[warp][mask].round;
    any = true;
  }
  return any;
}

uint64_t meet_warp(WarpOperation operation, unsigned mask, uint64_t value, unsigned source,
                   const std::source_location& where) noexcept {
  Thread& thread = running_thread(name_of(operation));
  Block& block = *current_block;
  const unsigned warp = thread.index / kLanes;
  thread.where = where;
  thread.operation = operation;
  thread.mask = mask;
  thread.value = value;
  thread.source = source;
  thread.state = ThreadState::kInWarpOperation;
  if (!names(mask, thread.index % kLanes)) {
    stop_block(block, "a lane takes part in an operation whose mask does not name it");
  }
  const unsigned lanes = std::min(kLanes, block.threads - warp * kLanes);
  if (lanes < kLanes && mask >> lanes != 0) {
    stop_block(block, "a mask names a lane that the block does not have");
  }
  if (is_shuffle(operation) && !names(mask, source)) {
    stop_block(block, "a shuffle reads a lane that its mask does not name");
  }
  void* word = nullptr;
  if constexpr (kThreadSanitizer) word = block.fibers->warps[warp][mask].word();
  release(word);
  thread.fiber->suspend();
  acquire(word);
  return thread.result;
}

}  // namespace simt
