// What block.cpp, warp.cpp and positions.cpp share: the block that runs on this thread of the system.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <source_location>

#include "block.h"
#include "fiber.h"
#include "simt/warp.h"

namespace simt {

inline constexpr unsigned kLanes = 32;

enum class ThreadState : unsigned char { kReady, kInWarpOperation, kAtBarrier, kReturned };

struct Thread {
  unsigned index = 0;
  ThreadState state = ThreadState::kReturned;
  Fiber* fiber = nullptr;      // null before it begins; with the thread sanitizer its own
  std::source_location where;  // of the barrier or operation
  // Of the operation of its warp:
  WarpOperation operation = WarpOperation::kSync;
  unsigned mask = 0;
};

// What threads release when they come to a meeting and acquire when all have come. The next meeting of
// the same threads has the other word: one that goes on early must not seem to have come before those
// that have not gone on yet.
struct Meeting {
  void* word() { return &words[round & 1]; }

  unsigned round = 0;
  uint64_t words[2] = {};
};

// Lanes are bits of masks.
struct Warp {
  unsigned lanes = 0;    // that the block has
  unsigned ready = 0;    // that can go on
  unsigned waiting = 0;  // in an operation of the warp
  bool alike = true;     // those that wait are in one operation, with one mask
  // Of the operation: what each lane gave, and gets.
  uint64_t values[kLanes] = {};
  uint64_t results[kLanes] = {};
  unsigned char sources[kLanes] = {};
};

// The thread sanitizer takes threads that ran on one fiber for one thread, and their stack for one
// stack. So that it tells them and blocks apart, each thread has its fiber, and two sets of them take
// turns.
struct FiberSet {
  Fiber* fibers[kMostThreads] = {};
  Meeting barrier;
  std::map<unsigned, Meeting> warps[kMostThreads / kLanes];  // by mask
};

struct Block {
  Thread& thread(unsigned warp, unsigned lane) { return all[warp * kLanes + lane]; }

  const Kernel* kernel = nullptr;
  unsigned number = 0;
  unsigned blocks = 0;  // of the grid
  unsigned threads = 0;
  unsigned char* shared = nullptr;
  size_t shared_bytes = 0;
  Thread all[kMostThreads];
  Warp warps[kMostThreads / kLanes];
  Thread* running = nullptr;  // null while none of them runs
  FiberSet* fibers = nullptr;
};

// The block that runs on this thread of the system, null where none does.
//
// Where it is, is known when the plug-in is loaded: each call of a kernel asks.
extern thread_local Block* current_block __attribute__((tls_model("initial-exec")));

// The thread that runs; ends the process where none does.
Thread& running_thread(const char* operation) noexcept;

// Lets the lanes go on that have all met; whether there were any.
bool complete_operations(Block& block, unsigned warp) noexcept;

const char* name_of(WarpOperation operation) noexcept;

// Ends the process with the sentence and a list of where each thread of the block is.
[[noreturn]] void stop_block(const Block& block, const char* sentence) noexcept;

// From now on, a sanitizer that ends the process in a kernel also says which block and thread it was.
void say_where_sanitizers_stop() noexcept;

}  // namespace simt
