#include "block.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "runner_state.h"
#include "sanitizers.h"

namespace simt {

constinit thread_local Block* current_block = nullptr;

namespace {

// The thread sanitizer ends the process at about 8,100 fibers and threads, or 65,530 mappings of memory, of which a fiber
// takes eight. From so many on, blocks have one set, which streams give back when a kernel has ended.
constexpr unsigned kFibersForMore = 3000;

// Full of garbage: NaN as floats, -1 as integers.
class SharedMemory {
 public:
  explicit SharedMemory(size_t bytes) : memory_(new unsigned char[bytes]) {}
  unsigned char* data() { return memory_.get(); }
  // Not memset(), for the thread sanitizer.
  void fill(size_t bytes) {
    size_t at = 0;
    for (; at + 8 <= bytes; at += 8) {
      *reinterpret_cast<volatile uint64_t*>(&memory_[at]) = ~uint64_t{0};
    }
    for (; at < bytes; ++at) *static_cast<volatile unsigned char*>(&memory_[at]) = 0xFF;
  }

 private:
  std::unique_ptr<unsigned char[]> memory_;
};

}  // namespace

constinit thread_local Runner::State* Runner::State::current = nullptr;

Runner::Runner() : state_(std::make_unique<State>()) { say_where_sanitizers_stop(); }
Runner::~Runner() = default;
void Runner::run(const Kernel& kernel, const Shape& shape, const Schedule& schedule) {
  state_->run(kernel, shape, schedule);
}

Runner::State::~State() {
  while (spare_ != nullptr) give_back_fiber(std::exchange(spare_, spare_->next));
  give_back_sets();
}

void Runner::State::give_back_sets() noexcept {
  for (FiberSet& set : sets_) {
    for (Fiber*& fiber : set.fibers) {
      if (fiber != nullptr) give_back_fiber(std::exchange(fiber, nullptr));
    }
  }
}

Fiber* Runner::State::take() noexcept {
  Fiber* const fiber = take_fiber(run_threads);
  fiber->owner = this;
  return fiber;
}

// The number of sets that take turns.
unsigned Runner::State::prepare_fibers(unsigned threads, unsigned blocks) {
  if constexpr (!kThreadSanitizer) return 1;
  unsigned sets = std::min(blocks, kSets);
  if (live_fibers() + threads > kFibersForMore) sets = 1;
  for (unsigned set = 0; set < sets; ++set) {
    for (unsigned i = 0; i < threads; ++i) {
      Fiber*& fiber = sets_[set].fibers[i];
      if (fiber != nullptr) continue;
      fiber = take();
      char name[48];
      std::snprintf(name, sizeof name, "thread %u of a block", i);
      fiber->set_name(name);
    }
  }
  return sets;
}

void Runner::State::run(const Kernel& kernel, const Shape& shape, const Schedule& schedule) {
  const unsigned blocks = shape.grid.x;
  const unsigned sets = prepare_fibers(shape.block.x, blocks);
  Turns turns(schedule.order, schedule.seed + launches_++, blocks);
  turns_ = &turns;
  block_.kernel = &kernel;
  block_.blocks = blocks;
  block_.threads = shape.block.x;
  block_.shared_bytes = shape.shared_bytes;
  current_block = &block_;
  current = this;

  // As large as the launch says, so that the address sanitizer watches its end. Each block has its own,
  // kept until the end, where one that got another's memory would look ordered after it.
  std::vector<SharedMemory> shared;
  for (unsigned i = 0; i < blocks; ++i) {
    if (kThreadSanitizer || i == 0) shared.emplace_back(shape.shared_bytes);
    shared.back().fill(shape.shared_bytes);
    block_.number = turns.next_block();
    block_.fibers = &sets_[i % sets];
    block_.shared = shared.back().data();
    release(&begin_);
    run_block();
  }
  acquire(&end_);
  if constexpr (kThreadSanitizer) {
    for (FiberSet& set : sets_) {
      for (auto& meetings : set.warps) meetings.clear();
    }
    if (live_fibers() > kFibersForMore) give_back_sets();
  }
  current = nullptr;
  current_block = nullptr;
}

void Runner::State::run_block() {
  for (unsigned i = 0; i < block_.threads; ++i) {
    block_.all[i].index = i;
    block_.all[i].state = ThreadState::kReady;
    block_.all[i].fiber = block_.fibers->fibers[i];
  }
  for (unsigned warp = 0; warp * kLanes < block_.threads; ++warp) {
    const unsigned lanes = std::min(kLanes, block_.threads - warp * kLanes);
    block_.warps[warp].lanes = ~0U >> (kLanes - lanes);
    block_.warps[warp].ready = block_.warps[warp].lanes;
  }
  turns_->begin(block_);
  own_.go_to(*next()->fiber);
}

// The thread that runs from now on, on its fiber; null when all have returned.
Thread* Runner::State::next() noexcept {
  block_.running = nullptr;
  Thread* const thread = turns_->next(block_);
  if (thread != nullptr && thread->fiber == nullptr) {
    thread->fiber = spare_ == nullptr ? take() : std::exchange(spare_, spare_->next);
  }
  block_.running = thread;
  return thread;
}

void Runner::State::run_thread() noexcept {
  Thread& thread = *block_.running;
  acquire(&begin_);
  block_.kernel->run();
  release(&end_);
  thread.state = ThreadState::kReturned;
  block_.warps[thread.index / kLanes].ready &= ~(1U << thread.index % kLanes);
}

// What fibers do. Threads that have not begun go on where another has returned.
void Runner::State::run_threads(Fiber& self) {
  for (;;) {
    State& state = *static_cast<State*>(self.owner);
    state.run_thread();
    if constexpr (!kThreadSanitizer) {
      self.next = std::exchange(state.spare_, &self);
    }
    const Thread* const thread = state.next();
    Fiber& other = thread == nullptr ? state.own_ : *thread->fiber;
    if (&other != &self) self.go_to(other);
  }
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
  void* word = current_block->fibers->barrier.word();
  release(word);
  leave_thread(thread, ThreadState::kAtBarrier);
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
