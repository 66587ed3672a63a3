// Faults planted in kernels and in what the host does are found, by the layer itself or by the sanitizer
// of the build: else what passes on it proves little.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "queue.h"
#include "sanitized.h"
#include "simt/control.h"

namespace shardrec::test {
namespace {

class Faults : public testing::Test {
 protected:
  void SetUp() override { testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
};

// The test is left out in builds whose sanitizer does not look for this.
class OutOfBounds : public Faults {
 protected:
  void SetUp() override {
    Faults::SetUp();
    if (!kAddressSanitizer) GTEST_SKIP() << "the address sanitizer's to find";
  }
};

class Races : public Faults {
 protected:
  void SetUp() override {
    Faults::SetUp();
    if (!kThreadSanitizer) GTEST_SKIP() << "the thread sanitizer's to find";
  }
};

// A report of the thread sanitizer that names both lines of this file.
std::string race_of(int line, int other) {
  const auto at = [](int number) { return "faults_test.cpp:" + std::to_string(number); };
  return "data race.*(" + at(line) + ".*" + at(other) + "|" + at(other) + ".*" + at(line) + ")";
}

template <class... Parameters, class... Arguments>
void run(void (*kernel)(Parameters...), unsigned grid, unsigned block, size_t shared_bytes,
         Arguments... arguments) {
  Queue queue;
  int* out = queue.allocate<int>(4096);
  queue.run(kernel, grid, block, shared_bytes, out, arguments...);
  queue.wait();
}

// ---- missing barriers

constexpr int kSyncwarpWrite = __LINE__ + 3;
constexpr int kSyncwarpRead = __LINE__ + 3;
__global__ void lacks_syncwarp(int* out) {
  shared<int[32]>()[threadIdx.x] = static_cast<int>(threadIdx.x);
  out[threadIdx.x] = shared<int[32]>()[threadIdx.x ^ 1];
}
TEST_F(Races, ALostSyncwarpIsFound) {
  EXPECT_DEATH(run(lacks_syncwarp, 1, 32, 128), race_of(kSyncwarpWrite, kSyncwarpRead));
}

constexpr int kReuseRead = __LINE__ + 5;
constexpr int kReuseWrite = __LINE__ + 5;
__global__ void lacks_syncwarp_before_reuse(int* out) {
  shared<int[32]>()[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncwarp();
  out[threadIdx.x] = shared<int[32]>()[threadIdx.x ^ 1];
  shared<int[32]>()[threadIdx.x] = 0;
  __syncwarp();
}
TEST_F(Races, ALostSyncwarpBeforeMemoryIsWrittenAgainIsFound) {
  EXPECT_DEATH(run(lacks_syncwarp_before_reuse, 1, 32, 128), race_of(kReuseRead, kReuseWrite));
}

constexpr int kHalfWrite = __LINE__ + 3;
constexpr int kHalfRead = __LINE__ + 4;
__global__ void synchronizes_half_a_warp(int* out) {
  shared<int[32]>()[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncwarp(threadIdx.x < 16 ? 0x0000FFFF : 0xFFFF0000);
  out[threadIdx.x] = shared<int[32]>()[threadIdx.x ^ 16];
}
TEST_F(Races, ASyncwarpOfTooFewLanesIsFound) {
  EXPECT_DEATH(run(synchronizes_half_a_warp, 1, 32, 128), race_of(kHalfWrite, kHalfRead));
}

constexpr int kBarrierWrite = __LINE__ + 3;
constexpr int kBarrierRead = __LINE__ + 4;
__global__ void lacks_syncthreads(int* out) {
  shared<int[64]>()[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncwarp();
  out[threadIdx.x] = shared<int[64]>()[threadIdx.x ^ 32];
}
TEST_F(Races, ALostSyncthreadsIsFound) {
  EXPECT_DEATH(run(lacks_syncthreads, 1, 64, 256),
               race_of(kBarrierWrite, kBarrierRead) +
                   ".*that was in.*kernel .*lacks_syncthreads.*block 0 of 1.*thread ");
}

constexpr int kLoopWrite = __LINE__ + 4;
constexpr int kLoopRead = __LINE__ + 5;
__global__ void lacks_the_second_syncthreads(int* out) {
  for (int round = 0; round < 3; ++round) {
    shared<int[64]>()[threadIdx.x] = round;
    __syncthreads();
    out[threadIdx.x] = shared<int[64]>()[threadIdx.x ^ 32];
  }
}
TEST_F(Races, ALostSyncthreadsAtTheEndOfALoopIsFound) {
  EXPECT_DEATH(run(lacks_the_second_syncthreads, 1, 64, 256), race_of(kLoopWrite, kLoopRead));
}

constexpr int kBlocksWrite = __LINE__ + 3;
__global__ void blocks_write_one_place(int* out) {
  __syncthreads();
  if (threadIdx.x == 5) out[0] = static_cast<int>(blockIdx.x);
  __syncthreads();
}
TEST_F(Races, BlocksThatWriteOnePlaceAreFound) {
  EXPECT_DEATH(run(blocks_write_one_place, 2, 64, 0), race_of(kBlocksWrite, kBlocksWrite));
}

// ---- missing waits

constexpr int kFillWrite = __LINE__ + 1;
__global__ void fill(int* out, int value) { out[blockIdx.x * blockDim.x + threadIdx.x] = value; }
constexpr int kCopyRead = __LINE__ + 1;
__global__ void copy(int* out, const int* in) { out[threadIdx.x] = in[threadIdx.x]; }
void copy_without_wait() {
  Queue one;
  Queue two;
  int* in = one.allocate<int>(64);
  int* out = two.allocate<int>(64);
  one.wait();
  for (int round = 0; round < 3; ++round) {
    one.run(fill, 1, 64, 0, in, round);
    two.run(copy, 1, 64, 0, out, in);
  }
  one.wait();
  two.wait();
}
TEST_F(Races, ALostStreamWaitIsFound) {
  EXPECT_DEATH(copy_without_wait(), race_of(kCopyRead, kFillWrite));
}

// The first stream has long done its work when the second begins: by luck, not by order.
void copy_much_later() {
  Queue one;
  Queue two;
  int* in = one.allocate<int>(64);
  int* out = two.allocate<int>(64);
  one.wait();
  two.run(fill, 1, 64, 0, out, 0);
  one.run(fill, 1, 64, 0, in, 1);
  while (cudaStreamQuery(two.stream()) == cudaErrorNotReady) {
  }
  // Not asked, as the second stream was: that would be an order.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  // The host enters the first stream again, and learns nothing by it.
  one.run(fill, 1, 1, 0, one.allocate<int>(1), 2);
  two.run(copy, 1, 64, 0, out, in);
  two.wait();
}
TEST_F(Races, ALostStreamWaitIsFoundWhenTheStreamsDoNotOverlap) {
  EXPECT_DEATH(copy_much_later(), race_of(kCopyRead, kFillWrite));
}

void read_without_synchronizing() {
  Queue queue;
  int* device = queue.allocate<int>(64);
  int* pinned = nullptr;
  check(cudaMallocHost(&pinned, 256));
  queue.run(fill, 1, 64, 0, device, 7);
  check(cudaMemcpyAsync(pinned, device, 256, cudaMemcpyDeviceToHost, queue.stream()));
  pinned[3] = 1;
  queue.wait();
}
TEST_F(Races, AHostThatDoesNotWaitForACopyIsFound) {
  EXPECT_DEATH(read_without_synchronizing(), "data race.*read_without_synchronizing");
}

void free_while_another_stream_reads() {
  Queue one;
  Queue two;
  int* out = two.allocate<int>(64);
  int* in = nullptr;
  check(cudaMallocAsync(&in, 256, one.stream()));
  one.run(fill, 1, 64, 0, in, 7);
  one.wait();
  two.run(copy, 1, 64, 0, out, in);
  check(cudaFreeAsync(in, one.stream()));
  one.wait();
  two.wait();
}
TEST_F(Races, MemoryFreedWhileAnotherStreamReadsItIsFound) {
  EXPECT_DEATH(free_while_another_stream_reads(), "data race.*(copy|discard)");
}

// ---- out of bounds

constexpr int kPastGlobal = __LINE__ + 1;
__global__ void reads_past_global(int* out, const int* in) { out[threadIdx.x] = in[threadIdx.x]; }
void read_past_global() {
  Queue queue;
  const int* in = queue.allocate<int>(63);
  int* out = queue.allocate<int>(64);
  queue.run(reads_past_global, 1, 64, 0, out, in);
  queue.wait();
}
TEST_F(OutOfBounds, AnAccessPastAGlobalArrayIsFound) {
  EXPECT_DEATH(read_past_global(),
               "use-after-poison.*READ of size 4.*faults_test.cpp:" + std::to_string(kPastGlobal));
}

constexpr int kFarOff = __LINE__ + 1;
__global__ void writes_far_off(int* out) { out[threadIdx.x + 20000] = 1; }
TEST_F(OutOfBounds, AnAccessFarFromAllArraysIsFound) {
  EXPECT_DEATH(run(writes_far_off, 1, 64, 0),
               "use-after-poison.*WRITE of size 4.*faults_test.cpp:" + std::to_string(kFarOff));
}

constexpr int kPastShared = __LINE__ + 2;
__global__ void writes_past_shared(int* out) {
  static_cast<int*>(simt::shared_memory())[threadIdx.x] = *out;
}
TEST_F(OutOfBounds, AnAccessPastASharedArrayIsFound) {
  EXPECT_DEATH(
      run(writes_past_shared, 1, 64, 252),
      "heap-buffer-overflow.*WRITE of size 4.*faults_test.cpp:" + std::to_string(kPastShared) +
          ".*that was in.*kernel .*writes_past_shared.*block 0 of 1.*thread 63 .warp 1, lane 31");
}

void read_freed_memory() {
  Queue queue;
  int* out = queue.allocate<int>(64);
  int* in = nullptr;
  check(cudaMallocAsync(&in, 256, queue.stream()));
  check(cudaFreeAsync(in, queue.stream()));
  queue.run(copy, 1, 64, 0, out, in);
  queue.wait();
}
TEST_F(OutOfBounds, AccessToFreedMemoryIsFound) {
  EXPECT_DEATH(read_freed_memory(), "use-after-poison.*READ of size 4.*in .*copy");
}

// ---- what the layer itself finds

TEST_F(Faults, AKernelThatWritesBehindMemoryIsFoundInAnyBuild) {
  const auto write = [] {
    Queue queue;
    int* out = queue.allocate<int>(63);
    queue.run(fill, 1, 64, 0, out, 1);
    queue.wait();
  };
  EXPECT_DEATH(write(), kAddressSanitizer ? "use-after-poison"
                                          : "wrote before or behind a block of 252 bytes");
}

__global__ void shuffles_from_absent_lane(int* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0x0000FFFF, 1, 20);
}
TEST_F(Faults, AShuffleFromALaneThatItsMaskDoesNotNameIsFound) {
  EXPECT_DEATH(
      run(shuffles_from_absent_lane, 1, 32, 0),
      "a shuffle reads a lane that its mask does not name.*kernel .*shuffles_from_absent_lane"
      ".*block 0 of 1.*found by thread 0 .warp 0, lane 0.*"
      "thread 0: in __shfl_sync with mask 0000ffff at .*faults_test.cpp:.*"
      "threads 1 to 31: can go on");
}

__global__ void shuffles_from_lane_elsewhere(int* out) {
  if (threadIdx.x < 16) {
    out[threadIdx.x] = __shfl_sync(0xFFFFFFFF, 1, 20);
  } else {
    __syncthreads();
  }
}
TEST_F(Faults, AShuffleThatALaneOfItsMaskIsAbsentFromIsFound) {
  EXPECT_DEATH(run(shuffles_from_lane_elsewhere, 1, 32, 0),
               "lanes of a warp wait for lanes of their mask that wait elsewhere.*"
               "threads 0 to 15: in __shfl_sync with mask ffffffff.*"
               "threads 16 to 31: in __syncthreads");
}

__global__ void leaves_itself_out(int* out) {
  __syncwarp(0xFFFFFFFE);
  out[threadIdx.x] = 1;
}
TEST_F(Faults, ALaneThatItsMaskDoesNotNameIsFound) {
  EXPECT_DEATH(run(leaves_itself_out, 1, 32, 0),
               "takes part in an operation whose mask does not name it");
}

__global__ void names_lanes_that_returned(int* out) {
  if (threadIdx.x >= 30) return;
  __syncwarp();
  out[threadIdx.x] = 1;
}
TEST_F(Faults, AMaskThatNamesALaneThatHasReturnedIsFound) {
  EXPECT_DEATH(run(names_lanes_that_returned, 1, 32, 0),
               "a mask names a lane that has returned.*"
               "threads 30 to 31: returned");
}

__global__ void names_lanes_that_are_not(int* out) {
  __syncwarp();
  out[threadIdx.x] = 1;
}
TEST_F(Faults, AMaskThatNamesALaneThatTheBlockDoesNotHaveIsFound) {
  EXPECT_DEATH(run(names_lanes_that_are_not, 1, 48, 0),
               "a mask names a lane that the block does not have");
}

__global__ void meets_in_different_operations(int* out) {
  if (threadIdx.x < 16) {
    out[threadIdx.x] = __any_sync(0xFFFFFFFF, 1);
  } else {
    out[threadIdx.x] = __all_sync(0xFFFFFFFF, 1);
  }
}
TEST_F(Faults, LanesThatMeetInDifferentOperationsAreFound) {
  EXPECT_DEATH(run(meets_in_different_operations, 3, 64, 0),
               "lanes of one mask meet in different operations.*"
               "threads 0 to 15: in __any_sync with mask ffffffff.*"
               "threads 16 to 31: in __all_sync with mask ffffffff");
}

__global__ void waits_at_barrier_without_some(int* out) {
  if (blockIdx.x == 2 && threadIdx.x >= 60) return;
  __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = 1;
}
TEST_F(Faults, ABarrierThatNotAllReachIsFound) {
  EXPECT_DEATH(run(waits_at_barrier_without_some, 3, 64, 0),
               "threads wait at a barrier that others do not reach.*block 2 of 3.*"
               "threads 0 to 59: in __syncthreads at .*threads 60 to 63: returned");
}

__global__ void waits_at_two_barriers(int* out) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  out[threadIdx.x] = 1;
}
TEST_F(Faults, ThreadsAtDifferentBarriersAreFound) {
  EXPECT_DEATH(run(waits_at_two_barriers, 1, 64, 0), "wait at different barriers");
}

__global__ void traps(int* out) {
  if (threadIdx.x == 40) __trap();
  out[threadIdx.x] = 1;
}
TEST_F(Faults, ATrapSaysWhereItIs) {
  EXPECT_DEATH(run(traps, 1, 64, 0), "faults_test.cpp:.*called __trap.*kernel .*traps.*thread 40");
}

__global__ void loads_misaligned(int* out) {
  const auto* pairs = reinterpret_cast<const float2*>(out + 1);
  *out = static_cast<int>(__ldg(pairs).x);
}
TEST_F(Faults, AMisalignedLoadIsFound) {
  EXPECT_DEATH(run(loads_misaligned, 1, 1, 0), "faults_test.cpp:.*no multiple of them");
}

__global__ void uses_more_shared_memory_than_named(int* out) { *out = shared<int[33]>()[0]; }
TEST_F(Faults, SharedMemoryThatTheLaunchDidNotNameIsFound) {
  EXPECT_DEATH(run(uses_more_shared_memory_than_named, 1, 1, 128),
               "uses more shared memory than its launch named");
}

TEST_F(Faults, TheHostCannotTouchMemoryOfTheDevice) {
  Queue queue;
  int* device = queue.upload(std::vector<int>(64, 7));
  queue.wait();
  volatile int* touched = device;
  EXPECT_DEATH(*touched = 1, "");
  EXPECT_DEATH([[maybe_unused]] const int read = *touched, "");
  int* plain = nullptr;
  check(cudaMalloc(&plain, 4096));
  touched = plain;
  EXPECT_DEATH(*touched = 1, "");
  check(cudaFree(plain));
  EXPECT_EQ(queue.download(device, 64), std::vector<int>(64, 7));
}

TEST_F(Faults, AMisalignedLoadOutsideOfAKernelIsFound) {
  float2 pairs[2] = {};
  const auto* odd = reinterpret_cast<const float2*>(&pairs[0].y);
  EXPECT_DEATH(__ldg(odd), "faults_test.cpp:.*no multiple of them, outside of a kernel");
}

TEST_F(Faults, AThreadsIndexOutsideOfAKernelIsFound) {
  EXPECT_DEATH([[maybe_unused]] const unsigned x = threadIdx.x, "threadIdx was called outside");
}

}  // namespace
}  // namespace shardrec::test
