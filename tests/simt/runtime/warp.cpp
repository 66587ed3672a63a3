// Operations of a warp: a lane waits for the others of its mask; the last to come lets all go on, each
// with its result.
#include "simt/warp.h"

#include <algorithm>
#include <bit>

#include "runner_state.h"
#include "sanitizers.h"

namespace simt {
namespace {

bool is_shuffle(WarpOperation operation) {
  return operation == WarpOperation::kShuffle || operation == WarpOperation::kShuffleUp ||
         operation == WarpOperation::kShuffleDown || operation == WarpOperation::kShuffleXor;
}

bool names(unsigned mask, unsigned lane) { return (mask >> lane & 1) != 0; }

bool has_met(Block& block, unsigned warp, const Thread& thread) noexcept {
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (!names(thread.mask, lane)) continue;
    const Thread& other = block.thread(warp, lane);
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

// Calls visit(lane) for each lane of the mask.
template <class Visit>
void for_lanes(unsigned mask, Visit visit) {
  for (; mask != 0; mask &= mask - 1) visit(static_cast<unsigned>(std::countr_zero(mask)));
}

void give(Warp& warp, unsigned mask, uint64_t result) {
  for_lanes(mask, [&](unsigned lane) { warp.results[lane] = result; });
}

void give_matches(Warp& warp, unsigned mask) {
  while (mask != 0) {
    const uint64_t value = warp.values[std::countr_zero(mask)];
    unsigned matches = 0;
    for_lanes(mask, [&](unsigned lane) {
      if (warp.values[lane] == value) matches |= 1U << lane;
    });
    give(warp, matches, matches);
    mask &= ~matches;
  }
}

// Each lane of the mask gets its result.
void give_results(Warp& warp, WarpOperation operation, unsigned mask) noexcept {
  if (operation == WarpOperation::kSync) return;
  if (is_shuffle(operation)) {
    for_lanes(mask, [&](unsigned lane) { warp.results[lane] = warp.values[warp.sources[lane]]; });
    return;
  }
  if (operation == WarpOperation::kMatchAny) {
    give_matches(warp, mask);
    return;
  }
  unsigned ballot = 0;
  uint64_t sum = 0;
  uint64_t least = UINT64_MAX;
  uint64_t most = 0;
  for_lanes(mask, [&](unsigned lane) {
    const uint64_t value = warp.values[lane];
    if (value != 0) ballot |= 1U << lane;
    sum += value;
    least = std::min(least, value);
    most = std::max(most, value);
  });
  switch (operation) {
    case WarpOperation::kBallot:
      return give(warp, mask, ballot);
    case WarpOperation::kAny:
      return give(warp, mask, ballot != 0 ? 1 : 0);
    case WarpOperation::kAll:
      return give(warp, mask, ballot == mask ? 1 : 0);
    case WarpOperation::kReduceAdd:
      return give(warp, mask, sum & 0xFFFFFFFF);
    case WarpOperation::kReduceMin:
      return give(warp, mask, least);
    default:
      return give(warp, mask, most);
  }
}

void complete(Block& block, unsigned number, WarpOperation operation, unsigned mask) noexcept {
  Warp& warp = block.warps[number];
  give_results(warp, operation, mask);
  for_lanes(mask, [&](unsigned lane) { block.thread(number, lane).state = ThreadState::kReady; });
  warp.waiting &= ~mask;
  warp.ready |= mask;
  if constexpr (kThreadSanitizer) ++block.fibers->warps[number][mask].round;
}

}  // namespace

bool complete_operations(Block& block, unsigned number) noexcept {
  Warp& warp = block.warps[number];
  if (warp.waiting == 0) return false;
  const Thread& first = block.thread(number, static_cast<unsigned>(std::countr_zero(warp.waiting)));
  if (warp.alike && warp.waiting == first.mask) {
    complete(block, number, first.operation, first.mask);
    return true;
  }
  bool any = false;
  for (unsigned left = warp.waiting; left != 0;) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(left));
    const Thread& thread = block.thread(number, lane);
    left &= ~(1U << lane);
    if (!has_met(block, number, thread)) continue;
    left &= ~thread.mask;
    complete(block, number, thread.operation, thread.mask);
    any = true;
  }
  return any;
}

uint64_t meet_warp(WarpOperation operation, unsigned mask, uint64_t value, unsigned source,
                   const std::source_location& where) noexcept {
  Thread& thread = running_thread(name_of(operation));
  Block& block = *current_block;
  const unsigned number = thread.index / kLanes;
  const unsigned lane = thread.index % kLanes;
  Warp& warp = block.warps[number];
  if (warp.waiting == 0) {
    warp.alike = true;
  } else if (warp.alike) {
    const Thread& other =
        block.thread(number, static_cast<unsigned>(std::countr_zero(warp.waiting)));
    warp.alike = other.operation == operation && other.mask == mask;
  }
  thread.where = where;
  thread.operation = operation;
  thread.mask = mask;
  thread.state = ThreadState::kInWarpOperation;
  if (!names(mask, lane)) {
    stop_block(block, "a lane takes part in an operation whose mask does not name it");
  }
  if ((mask & ~warp.lanes) != 0) {
    stop_block(block, "a mask names a lane that the block does not have");
  }
  if (is_shuffle(operation) && !names(mask, source)) {
    stop_block(block, "a shuffle reads a lane that its mask does not name");
  }
  warp.values[lane] = value;
  warp.sources[lane] = static_cast<unsigned char>(source);
  warp.waiting |= 1U << lane;
  void* word = nullptr;
  if constexpr (kThreadSanitizer) word = block.fibers->warps[number][mask].word();
  release(word);
  leave_thread(thread, ThreadState::kInWarpOperation);
  acquire(word);
  return warp.results[lane];
}

}  // namespace simt
