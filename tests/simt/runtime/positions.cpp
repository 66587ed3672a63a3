// The end of a process whose kernel broke a rule: a sentence, and where each thread of the block is.
#include <cstdio>
#include <cstdlib>

#include "block_state.h"
#include "sanitizers.h"
#include "symbol_name.h"

namespace simt {
namespace {

bool same_position(const Thread& one, const Thread& other) {
  if (one.state != other.state) return false;
  if (one.state == ThreadState::kReady || one.state == ThreadState::kReturned) return true;
  return one.where.line() == other.where.line() &&
         one.where.file_name() == other.where.file_name() &&
         (one.state == ThreadState::kAtBarrier ||
          (one.operation == other.operation && one.mask == other.mask));
}

void print_position(const Block& block, const Thread& thread) {
  switch (thread.state) {
    case ThreadState::kReady:
      std::fputs(&thread == block.running ? "run" : "can go on", stderr);
      return;
    case ThreadState::kReturned:
      std::fputs("returned", stderr);
      return;
    case ThreadState::kAtBarrier:
      std::fputs("in __syncthreads", stderr);
      break;
    case ThreadState::kInWarpOperation:
      std::fprintf(stderr, "in %s with mask %08x", name_of(thread.operation), thread.mask);
      break;
  }
  std::fprintf(stderr, " at %s:%u", thread.where.file_name(),
               static_cast<unsigned>(thread.where.line()));
}

// The kernel, the block and, if one runs, the thread.
void print_running(const Block& block) {
  char name[512];
  symbol_name(block.kernel->function(), name, sizeof name);
  std::fprintf(stderr, "  kernel %s, block %u of %u\n", name, block.number, block.blocks);
  if (block.running == nullptr) return;
  const unsigned index = block.running->index;
  std::fprintf(stderr, "  found by thread %u (warp %u, lane %u)\n", index, index / kLanes,
               index % kLanes);
}

}  // namespace

const char* name_of(WarpOperation operation) noexcept {
  static constexpr const char* kNames[] = {
      "__syncwarp",       "__shfl_sync",       "__shfl_up_sync",    "__shfl_down_sync",
      "__shfl_xor_sync",  "__ballot_sync",     "__any_sync",        "__all_sync",
      "__match_any_sync", "__reduce_add_sync", "__reduce_min_sync", "__reduce_max_sync"};
  return kNames[static_cast<unsigned>(operation)];
}

void stop_block(const Block& block, const char* sentence) noexcept {
  std::fprintf(stderr, "simt: %s\n", sentence);
  print_running(block);
  for (unsigned first = 0; first < block.threads;) {
    unsigned last = first;
    while (last + 1 < block.threads && same_position(block.all[first], block.all[last + 1])) ++last;
    if (first == last) {
      std::fprintf(stderr, "  thread %u: ", first);
    } else {
      std::fprintf(stderr, "  threads %u to %u: ", first, last);
    }
    print_position(block, block.all[first]);
    std::fputc('\n', stderr);
    first = last + 1;
  }
  std::fflush(stderr);
  std::abort();
}

void stop(const char* sentence, const std::source_location& where) noexcept {
  std::fprintf(stderr, "simt: at %s:%u:\n", where.file_name(), static_cast<unsigned>(where.line()));
  if (current_block != nullptr) stop_block(*current_block, sentence);
  std::fprintf(stderr, "simt: %s, outside of a kernel\n", sentence);
  std::abort();
}

void say_where_sanitizers_stop() noexcept {
#if defined(SHARDREC_ADDRESS_SANITIZER) || defined(SHARDREC_THREAD_SANITIZER)
  __sanitizer_set_death_callback([] {
    if (current_block == nullptr) return;
    std::fputs("simt: that was in\n", stderr);
    print_running(*current_block);
    std::fflush(stderr);
  });
#endif
}

}  // namespace simt
