#include "block.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "block_state.h"
#include "sanitizers.h"

namespace simt {

thread_local Block* current_block = nullptr;

namespace {

constexpr unsigned kSets = kThreadSanitizer ? 2 : 1;
// The thread sanitizer ends the process at about 8,100 fibers and threads.
constexpr unsigned kFibersForSecondSets = 6000;
unsigned live_fibers = 0;
constexpr unsigned kMostWarps = kMostThreads / kLanes;
constexpr unsigned char kGarbage = 0xFF;  // NaN as floats, -1 as integers

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

// The i-th of a number of things in the order of a schedule.
unsigned in_order(Order order, unsigned i, unsigned count) {
  return order == Order::kDescending ? count - 1 - i : i;
}

}  // namespace

class Runner::State {
 public:
  State() = default;
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void run(const Kernel& kernel, const Shape& shape, const Schedule& schedule);

 private:
  unsigned prepare_fibers(unsigned threads, unsigned blocks);
  void run_block(Random& random);
  void run_warps(Random& random);
  bool step_warp(unsigned warp, Random& random);
  bool all_returned_or_meet();
  static void run_thread(void* argument);

  Block block_;
  Order order_ = Order::kAscending;
  unsigned launches_ = 0;
  unsigned fibers_ = 0;
  Thread threads_[kMostThreads];
  FiberSet sets_[kSets];
  // Of the launch, for the thread sanitizer: what came before it, what its threads did.
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
};

Runner::Runner() : state_(std::make_unique<State>()) { say_where_sanitizers_stop(); }
Runner::~Runner() = default;
void Runner::run(const Kernel& kernel, const Shape& shape, const Schedule& schedule) {
  state_->run(kernel, shape, schedule);
}

Runner::State::~State() { __atomic_fetch_sub(&live_fibers, fibers_, __ATOMIC_RELAXED); }

// The number of sets that take turns.
unsigned Runner::State::prepare_fibers(unsigned threads, unsigned blocks) {
  unsigned sets = std::min(blocks, kSets);
  if (__atomic_load_n(&live_fibers, __ATOMIC_RELAXED) + threads > kFibersForSecondSets) sets = 1;
  for (unsigned set = 0; set < sets; ++set) {
    for (unsigned i = 0; i < threads; ++i) {
      if (sets_[set].fibers[i] != nullptr) continue;
      char name[48];
      std::snprintf(name, sizeof name, "thread %u of a block", i);
      sets_[set].fibers[i] = std::make_unique<Fiber>(name);
      ++fibers_;
      __atomic_fetch_add(&live_fibers, 1, __ATOMIC_RELAXED);
    }
  }
  return sets;
}

void Runner::State::run(const Kernel& kernel, const Shape& shape, const Schedule& schedule) {
  const unsigned blocks = shape.grid.x;
  const unsigned sets = prepare_fibers(shape.block.x, blocks);
  order_ = schedule.order;
  Random random(schedule.seed + launches_++);
  block_.kernel = &kernel;
  block_.blocks = blocks;
  block_.threads = shape.block.x;
  block_.all = threads_;
  block_.shared_bytes = shape.shared_bytes;
  current_block = &block_;

  // Random blocks: from anywhere on, by steps that come to each.
  unsigned number = order_ == Order::kRandom ? random.below(blocks) : 0;
  unsigned step = order_ == Order::kRandom ? random.below(blocks) : 1;
  while (std::gcd(step, blocks) != 1) ++step;

  // Memory of a block of its own, so that the address sanitizer watches its end. All are kept until
  // the end where a block that gets another's memory would look ordered after it.
  std::vector<std::unique_ptr<unsigned char[]>> shared(kThreadSanitizer ? blocks : 1);
  for (unsigned i = 0; i < blocks; ++i) {
    block_.number = in_order(order_, number, blocks);
    number = static_cast<unsigned>((uint64_t{number} + step) % blocks);
    block_.fibers = &sets_[i % sets];
    auto& memory = shared[kThreadSanitizer ? i : 0];
    memory.reset(new unsigned char[shape.shared_bytes]);
    block_.shared = memory.get();
    std::fill_n(static_cast<volatile unsigned char*>(block_.shared), shape.shared_bytes, kGarbage);
    release(&begin_);
    run_block(random);
  }
  acquire(&end_);
  for (unsigned set = 0; set < sets; ++set) {
    for (auto& meetings : sets_[set].warps) meetings.clear();
  }
  current_block = nullptr;
}

void Runner::State::run_thread(void* argument) {
  State& state = *static_cast<State*>(argument);
  Thread& thread = *state.block_.running;
  acquire(&state.begin_);
  state.block_.kernel->run();
  release(&state.end_);
  thread.state = ThreadState::kReturned;
}

void Runner::State::run_block(Random& random) {
  for (unsigned i = 0; i < block_.threads; ++i) {
    threads_[i].index = i;
    threads_[i].state = ThreadState::kReady;
    threads_[i].fiber = block_.fibers->fibers[i].get();
    threads_[i].fiber->start(run_thread, this);
  }
  do {
    run_warps(random);
  } while (!all_returned_or_meet());
}

// Until no warp can go on.
void Runner::State::run_warps(Random& random) {
  unsigned count = (block_.threads + kLanes - 1) / kLanes;
  if (order_ != Order::kRandom) {
    for (unsigned i = 0; i < count; ++i) {
      while (step_warp(in_order(order_, i, count), random)) {
      }
    }
    return;
  }
  unsigned warps[kMostWarps];
  for (unsigned i = 0; i < count; ++i) warps[i] = i;
  while (count != 0) {
    const unsigned i = random.below(count);
    if (!step_warp(warps[i], random)) warps[i] = warps[--count];
  }
}

// Lets each lane that can go on do so once. Whether some can then.
bool Runner::State::step_warp(unsigned warp, Random& random) {
  const unsigned first = warp * kLanes;
  const unsigned lanes = std::min(kLanes, block_.threads - first);
  unsigned chosen[kLanes];
  for (unsigned i = 0; i < lanes; ++i) chosen[i] = in_order(order_, i, lanes);
  for (unsigned i = lanes; order_ == Order::kRandom && i > 1; --i) {
    const unsigned other = random.below(i);
    const unsigned lane = chosen[i - 1];
    chosen[i - 1] = chosen[other];
    chosen[other] = lane;
  }
  for (unsigned i = 0; i < lanes; ++i) {
    Thread& thread = threads_[first + chosen[i]];
    if (thread.state != ThreadState::kReady) continue;
    block_.running = &thread;
    thread.fiber->resume();
    block_.running = nullptr;
  }
  if (complete_operations(block_, warp)) return true;
  for (unsigned i = 0; i < lanes; ++i) {
    if (threads_[first + i].state == ThreadState::kInWarpOperation) {
      stop_block(block_, "lanes of a warp wait for lanes of their mask that wait elsewhere");
    }
  }
  return false;
}

// No warp can go on: all threads have returned, or all are at one barrier and are let go on.
bool Runner::State::all_returned_or_meet() {
  unsigned returned = 0;
  const Thread* waits = nullptr;
  for (unsigned i = 0; i < block_.threads; ++i) {
    const Thread& thread = threads_[i];
    if (thread.state == ThreadState::kReturned) {
      ++returned;
      continue;
    }
    if (waits != nullptr && (waits->where.line() != thread.where.line() ||
                             waits->where.column() != thread.where.column())) {
      stop_block(block_, "threads of a block wait at different barriers");
    }
    waits = &thread;
  }
  if (waits == nullptr) return true;
  if (returned != 0) stop_block(block_, "threads wait at a barrier that others do not reach");
  ++block_.fibers->barrier.round;
  for (unsigned i = 0; i < block_.threads; ++i) threads_[i].state = ThreadState::kReady;
  return false;
}

Thread& running_thread(const char* operation) noexcept {
  if (current_block == nullptr || current_block->running == nullptr) {
    std::fprintf(stderr, "simt: %s was called outside of a kernel\n", operation);
    std::abort();
  }
  return *current_block->running;
}

void meet_block(const std::source_location& where) noexcept {
  Thread& thread = running_thread("__syncthreads");
  thread.where = where;
  thread.state = ThreadState::kAtBarrier;
  void* word = current_block->fibers->barrier.word();
  release(word);
  thread.fiber->suspend();
  acquire(word);
}

unsigned thread_index() noexcept { return running_thread("threadIdx").index; }
unsigned block_index() noexcept {
  running_thread("blockIdx");
  return current_block->number;
}
unsigned block_threads() noexcept {
  running_thread("blockDim");
  return current_block->threads;
}
unsigned grid_blocks() noexcept {
  running_thread("gridDim");
  return current_block->blocks;
}
void* shared_memory() noexcept {
  running_thread("shared_memory()");
  return current_block->shared;
}
size_t shared_bytes() noexcept {
  running_thread("shared_bytes()");
  return current_block->shared_bytes;
}

}  // namespace simt
