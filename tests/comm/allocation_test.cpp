// A steady exchange or reduction allocates nothing. Counts the allocations of the whole program.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <vector>

#include "world.h"

namespace {

std::atomic<uint64_t> allocations{0};
std::atomic<int64_t> alive{0};

void count_allocation() {
  allocations.fetch_add(1, std::memory_order_relaxed);
  alive.fetch_add(1, std::memory_order_relaxed);
}
void count_release() { alive.fetch_sub(1, std::memory_order_relaxed); }

}  // namespace

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SHARDREC_TEST_SANITIZER_COUNTS 1
#endif
#endif

#ifdef SHARDREC_TEST_SANITIZER_COUNTS
// A sanitizer brings its own operator new, and hooks for counting (the thread sanitizer's tell
// nothing of aligned allocations).
extern "C" {
void __sanitizer_malloc_hook(const volatile void*, size_t) { count_allocation(); }
void __sanitizer_free_hook(const volatile void*) { count_release(); }
}
#else
namespace {

void* counted(size_t size, size_t alignment) {
  const size_t rounded = (size + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (memory == nullptr) throw std::bad_alloc();
  count_allocation();
  return memory;
}
void drop(void* memory) {
  if (memory != nullptr) count_release();
  std::free(memory);
}

}  // namespace

void* operator new(size_t size) { return counted(size, alignof(std::max_align_t)); }
void* operator new(size_t size, std::align_val_t alignment) {
  return counted(size, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { drop(memory); }
void operator delete(void* memory, size_t) noexcept { drop(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { drop(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { drop(memory); }
#endif

namespace shardrec::comm {
namespace {

constexpr Operation kTest{.name = "test", .kind = 1};

// Runs `step` on all ranks, first often enough to be steady, then counted.
void expect_steady(int world, const std::function<std::function<void()>(Communicator&)>& make) {
  std::vector<uint64_t> counts(static_cast<size_t>(world));
  const auto errors = run_ranks(world, [&](Communicator& comm) {
    Collectives gate(comm.open_channel(Purpose::kControl), comm.rank(), comm.size());
    const std::function<void()> step = make(comm);
    for (int i = 0; i < 20; ++i) step();
    gate.barrier(kTest);
    const uint64_t before = allocations.load();
    gate.barrier(kTest);
    for (int i = 0; i < 100; ++i) step();
    gate.barrier(kTest);
    counts[static_cast<size_t>(comm.rank())] = allocations.load() - before;
    gate.barrier(kTest);
  });
  for (const auto& error : errors) ASSERT_FALSE(error) << error->sentence();
  for (const uint64_t count : counts) EXPECT_EQ(count, 0U);
}

TEST(SteadyState, ExchangeAllocatesNothing) {
  for (const int world : {1, 2, 4}) {
    expect_steady(world, [](Communicator& comm) -> std::function<void()> {
      const auto size = static_cast<size_t>(comm.size());
      const auto channel = comm.open_channel(Purpose::kInput);
      const auto memory = std::make_shared<std::vector<std::byte>>(1000);
      const auto send = std::make_shared<std::vector<ConstBytes>>(size, ConstBytes(*memory));
      const auto received = std::make_shared<std::vector<ConstBytes>>(size);
      return [=] {
        const Ticket first = channel->post(kTest, *send, memory);
        const Ticket second = channel->post(kTest, *send, memory);
        for (const Ticket ticket : {first, second}) {
          channel->receive(ticket, *received);
          channel->release(ticket);
          channel->reclaim(ticket);
        }
      };
    });
  }
}

TEST(SteadyState, CollectivesOfConstantSizeAllocateNothing) {
  for (const int world : {1, 2, 3, 8}) {
    expect_steady(world, [](Communicator& comm) -> std::function<void()> {
      const auto collectives = std::make_shared<Collectives>(comm.open_channel(Purpose::kDense),
                                                             comm.rank(), comm.size());
      const auto few = std::make_shared<std::vector<float>>(10);
      const auto many = std::make_shared<std::vector<float>>(24000);
      return [=] {
        collectives->all_reduce<float>(kTest, Reduction::kSum, *few);
        collectives->all_reduce<float>(kTest, Reduction::kMean, *many);
        collectives->all_reduce<float>(kTest, Reduction::kMax, *many, many);
        (void)collectives->reduce_scatter<float>(kTest, Reduction::kSum,
                                                 std::span<const float>(*many));
        collectives->all_gather(kTest, std::as_bytes(std::span(*few)));
        collectives->broadcast(kTest, 0, std::as_writable_bytes(std::span(*many)));
        collectives->barrier(kTest);
      };
    });
  }
}

TEST(SteadyState, DestroyedChannelsLeaveNothingBehind) {
  // A service that makes and destroys collections on one communicator.
  const auto errors = run_ranks(2, [&](Communicator& comm) {
    Collectives gate(comm.open_channel(Purpose::kControl), comm.rank(), comm.size());
    int64_t before = 0;
    for (int round = 0; round < 120; ++round) {
      {
        Collectives collectives(comm.open_channel(Purpose::kDense), comm.rank(), comm.size());
        std::vector<float> data(10);
        collectives.all_reduce<float>(kTest, Reduction::kSum, data);
        collectives.all_gather(kTest, std::as_bytes(std::span(data)));
      }
      gate.barrier(kTest);
      if (round == 19) before = alive.load();
      gate.barrier(kTest);
    }
    EXPECT_LE(alive.load(), before);
    gate.barrier(kTest);
  });
  for (const auto& error : errors) ASSERT_FALSE(error) << error->sentence();
}

}  // namespace
}  // namespace shardrec::comm
