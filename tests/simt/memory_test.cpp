// Memory of devices and of the host: allocation in the order of streams, copies, what pointers are, and
// what is refused.
#include <cstring>
#include <thread>

#include "queue.h"
#include "simt/control.h"

namespace shardrec::test {
namespace {

using Bytes = std::vector<unsigned char>;

TEST(Memory, IsFullOfGarbageAndAligned) {
  Queue queue;
  for (const size_t bytes : {size_t{1}, size_t{100}, size_t{5000}, size_t{3} << 20}) {
    unsigned char* of_stream = queue.allocate<unsigned char>(bytes);
    unsigned char* plain = nullptr;
    check(cudaMalloc(&plain, bytes));
    for (unsigned char* block : {of_stream, plain}) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 256, 0U);
      EXPECT_EQ(queue.download(block, bytes), Bytes(bytes, 0xFF));
    }
    check(cudaFree(plain));
  }
}

TEST(Memory, CanBeUsedAndFreedInTheOrderOfAStream) {
  const int64_t before = simt_live_allocations();
  Queue queue;
  for (int round = 0; round < 100; ++round) {
    unsigned char* block = nullptr;
    Bytes out(1000);
    check(cudaMallocAsync(&block, 1000, queue.stream()));
    EXPECT_EQ(simt_live_allocations(), before + 1);
    check(cudaMemsetAsync(block, round, 1000, queue.stream()));
    check(cudaMemcpyAsync(out.data(), block, 1000, cudaMemcpyDeviceToHost, queue.stream()));
    check(cudaFreeAsync(block, queue.stream()));
    EXPECT_EQ(out, Bytes(1000, static_cast<unsigned char>(round)));
  }
  EXPECT_EQ(simt_live_allocations(), before);
}

// More addresses than are kept from being taken again: those that are, are as fresh as others.
TEST(Memory, AddressesAreTakenAgain) {
  constexpr size_t kBytes = size_t{12} << 20;
  Queue queue;
  unsigned char* kept = queue.upload(Bytes(100, 7));
  for (int round = 0; round < 14; ++round) {
    unsigned char* block = nullptr;
    check(cudaMallocAsync(&block, kBytes, queue.stream()));
    unsigned char last = 0;
    check(cudaMemcpyAsync(&last, block + kBytes - 1, 1, cudaMemcpyDeviceToHost, queue.stream()));
    EXPECT_EQ(last, 0xFF);
    check(cudaFreeAsync(block, queue.stream()));
  }
  EXPECT_EQ(queue.download(kept, 100), Bytes(100, 7));
}

TEST(Memory, CopiesGoAllWays) {
  Queue queue;
  Bytes in(300);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<unsigned char>(i);
  unsigned char* first = queue.upload(in);
  unsigned char* second = queue.allocate<unsigned char>(300);
  unsigned char* pinned = nullptr;
  check(cudaHostAlloc(&pinned, 300, cudaHostAllocPortable | cudaHostAllocMapped));
  Bytes out(300);
  const auto copy = [&](void* to, const void* from, cudaMemcpyKind kind) {
    check(cudaMemcpyAsync(to, from, 300, kind, queue.stream()));
  };
  copy(second, first, cudaMemcpyDeviceToDevice);
  copy(pinned, second, cudaMemcpyDeviceToHost);
  check(cudaMemsetAsync(second, 0, 300, queue.stream()));
  copy(second, pinned, cudaMemcpyHostToDevice);
  check(cudaMemsetAsync(pinned, 0, 300, queue.stream()));
  copy(pinned, second, cudaMemcpyDefault);
  copy(out.data(), pinned, cudaMemcpyHostToHost);
  EXPECT_EQ(out, in);
  check(cudaFreeHost(pinned));
}

TEST(Memory, APageableSourceIsReadDuringTheCall) {
  Queue queue;
  Bytes source(64, 1);
  unsigned char* device = queue.upload(source);
  std::fill(source.begin(), source.end(), static_cast<unsigned char>(2));
  EXPECT_EQ(queue.download(device, 64), Bytes(64, 1));
}

__global__ void write_both(int* device, int* pinned) {
  *pinned = *device + 1;
  *device = 50;
}
TEST(Memory, KernelsReachPinnedMemory) {
  Queue queue;
  int* device = queue.upload(std::vector<int>{41});
  int* pinned = nullptr;
  check(cudaMallocHost(&pinned, sizeof(int)));
  queue.run(write_both, 1, 1, 0, device, pinned);
  queue.wait();
  EXPECT_EQ(*pinned, 42);
  check(cudaFreeHost(pinned));
}

TEST(Memory, PointersSayWhatTheyAre) {
  Queue queue;
  char* device = queue.allocate<char>(100);
  char* pinned = nullptr;
  check(cudaMallocHost(&pinned, 100));
  char pageable = 0;
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, device + 99));
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  EXPECT_EQ(attributes.devicePointer, device + 99);
  EXPECT_EQ(attributes.hostPointer, nullptr);
  check(cudaPointerGetAttributes(&attributes, device + 100));
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  check(cudaPointerGetAttributes(&attributes, pinned));
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(attributes.devicePointer, pinned);
  EXPECT_EQ(attributes.hostPointer, pinned);
  for (const void* other :
       {static_cast<const void*>(&pageable), static_cast<const void*>(nullptr)}) {
    check(cudaPointerGetAttributes(&attributes, other));
    EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
    EXPECT_EQ(attributes.devicePointer, nullptr);
  }
  check(cudaFreeHost(pinned));
}

TEST(Memory, WhatIsNoAllocationIsRefused) {
  Queue queue;
  char* device = queue.allocate<char>(100);
  char* plain = nullptr;
  check(cudaMalloc(&plain, 100));
  char pageable[200] = {};
  const cudaStream_t stream = queue.stream();
  const auto copy = [&](void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    return cudaMemcpyAsync(to, from, bytes, kind, stream);
  };
  EXPECT_EQ(copy(device, pageable, 101, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(copy(device + 50, pageable, 51, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(copy(pageable, device, 101, cudaMemcpyDefault), cudaErrorInvalidValue);
  EXPECT_EQ(copy(device, pageable, 10, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(copy(pageable, device, 10, cudaMemcpyHostToHost), cudaErrorInvalidValue);
  EXPECT_EQ(copy(device, nullptr, 10, cudaMemcpyDefault), cudaErrorInvalidValue);
  EXPECT_EQ(copy(device, pageable, 10, static_cast<cudaMemcpyKind>(9)),
            cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(copy(device, pageable, 0, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(device, 0, 101, stream), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemsetAsync(pageable, 0, 10, stream), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(device + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(pageable), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(plain, stream), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeAsync(nullptr, stream), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(pageable), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(nullptr), cudaSuccess);
  check(cudaFree(plain));
  EXPECT_EQ(cudaFree(plain), cudaErrorInvalidValue);
  EXPECT_EQ(copy(plain, pageable, 1, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaHostAlloc(&plain, 10, 0x80), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMallocAsync(&plain, 0, stream), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMalloc(&plain, 0), cudaSuccess);
  EXPECT_EQ(plain, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST(Memory, TheAllocationThatATestNamesFailsAndNoOther) {
  Queue queue;
  const int64_t before = simt_live_allocations();
  void* blocks[4] = {};
  simt_fail_allocation(3);
  EXPECT_EQ(cudaMalloc(&blocks[0], 10), cudaSuccess);
  EXPECT_EQ(cudaMallocHost(&blocks[1], 10), cudaSuccess);
  EXPECT_EQ(cudaMallocAsync(&blocks[2], 10, queue.stream()), cudaErrorMemoryAllocation);
  EXPECT_EQ(blocks[2], nullptr);
  EXPECT_EQ(cudaMallocAsync(&blocks[3], 10, queue.stream()), cudaSuccess);
  EXPECT_EQ(simt_live_allocations(), before + 3);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  check(cudaFree(blocks[0]));
  check(cudaFreeHost(blocks[1]));
  check(cudaFree(blocks[3]));  // as CUDA allows it
  EXPECT_EQ(simt_live_allocations(), before);
}

TEST(Memory, EndsWhereTheDeviceEnds) {
  size_t available = 0;
  size_t total = 0;
  check(cudaMemGetInfo(&available, &total));
  EXPECT_LE(available, total);
  void* block = nullptr;
  EXPECT_EQ(cudaMalloc(&block, available + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  check(cudaMalloc(&block, 1000));
  size_t left = 0;
  check(cudaMemGetInfo(&left, &total));
  EXPECT_EQ(left, available - 1000);
  check(cudaFree(block));
  check(cudaMemGetInfo(&left, &total));
  EXPECT_EQ(left, available);
}

// cudaFree() waits for the device, as CUDA's does.
TEST(Memory, IsFreedAfterTheWorkThatUsesIt) {
  Queue queue;
  int* plain = nullptr;
  int* pinned = nullptr;
  check(cudaMalloc(&plain, sizeof(int)));
  check(cudaMallocHost(&pinned, sizeof(int)));
  check(cudaMemsetAsync(plain, 0, sizeof(int), queue.stream()));
  for (int i = 0; i < 20; ++i) queue.run(write_both, 1, 1, 0, plain, pinned);
  check(cudaFree(plain));
  EXPECT_EQ(cudaStreamQuery(queue.stream()), cudaSuccess);
  EXPECT_EQ(*pinned, 51);
  check(cudaFreeHost(pinned));
}

}  // namespace
}  // namespace shardrec::test
