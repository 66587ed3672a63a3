// Devices: how many there are and what they are like, by the environment too; errors of enqueued work.
#include <cstdlib>
#include <cstring>

#include "queue.h"
#include "sanitized.h"
#include "simt/control.h"

namespace shardrec::test {
namespace {

// In a process of its own, where the environment is read anew.
template <class Body>
void expect_in_child(const char* variable, const char* value, Body body) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  setenv(variable, value, 1);
  const auto run = [&] {
    body();
    if (testing::Test::HasFailure()) std::fputs("failed in the child\n", stderr);
    std::exit(testing::Test::HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
  unsetenv(variable);
}

TEST(Devices, ReachEachOthersMemoryWhereItIsAskedFor) {
  expect_in_child("SHARDREC_SIMT_DEVICES", "2", [] {
    int can = 5;
    check(cudaDeviceCanAccessPeer(&can, 0, 1));
    EXPECT_EQ(can, 1);
    check(cudaDeviceCanAccessPeer(&can, 1, 1));
    EXPECT_EQ(can, 0);
    EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 0, 2), cudaErrorInvalidDevice);
    check(cudaDeviceEnablePeerAccess(1, 0));
    EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice) << "itself";
    cudaMemPool_t pool = nullptr;
    check(cudaDeviceGetMemPool(&pool, 1));
    cudaMemAccessDesc access{.location = {cudaMemLocationTypeDevice, 0},
                             .flags = cudaMemAccessFlagsProtReadWrite};
    check(cudaMemPoolSetAccess(pool, &access, 1));
    EXPECT_EQ(simt_pools_reached(0), 2U);
    EXPECT_EQ(simt_peers_enabled(0), 2U);
    simt_set_peer_access(2);
    EXPECT_EQ(cudaMemPoolSetAccess(pool, &access, 1), cudaErrorPeerAccessUnsupported);
    access.flags = cudaMemAccessFlagsProtNone;
    check(cudaMemPoolSetAccess(pool, &access, 1));
    EXPECT_EQ(simt_pools_reached(0), 0U);
    access.location.id = 1;
    EXPECT_EQ(cudaMemPoolSetAccess(pool, &access, 1), cudaErrorInvalidValue) << "its own";
    simt_set_peer_access(1);
    check(cudaDeviceCanAccessPeer(&can, 0, 1));
    EXPECT_EQ(can, 0);
  });
}

TEST(Devices, SayWhatTheyAre) {
  int count = 0;
  check(cudaGetDeviceCount(&count));
  EXPECT_EQ(count, 1);
  int device = -1;
  check(cudaGetDevice(&device));
  EXPECT_EQ(device, 0);
  EXPECT_EQ(cudaSetDevice(1), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  check(cudaSetDevice(0));
  const auto attribute = [](cudaDeviceAttr which) {
    int value = -1;
    check(cudaDeviceGetAttribute(&value, which, 0));
    return value;
  };
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0));
  EXPECT_GT(std::strlen(properties.name), 0U);
  EXPECT_EQ(properties.major, attribute(cudaDevAttrComputeCapabilityMajor));
  EXPECT_EQ(properties.minor, attribute(cudaDevAttrComputeCapabilityMinor));
  EXPECT_EQ(properties.multiProcessorCount, attribute(cudaDevAttrMultiProcessorCount));
  EXPECT_EQ(properties.l2CacheSize, attribute(cudaDevAttrL2CacheSize));
  EXPECT_EQ(attribute(cudaDevAttrWarpSize), 32);
  EXPECT_EQ(attribute(cudaDevAttrMaxThreadsPerBlock), 1024);
  EXPECT_EQ(attribute(cudaDevAttrMaxSharedMemoryPerBlock), 48 << 10);
  EXPECT_EQ(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin), 227 << 10);
  size_t available = 0;
  size_t total = 0;
  check(cudaMemGetInfo(&available, &total));
  EXPECT_EQ(properties.totalGlobalMem, total);
  int least = 5;
  int greatest = 5;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT_EQ(least, 0);
  EXPECT_LT(greatest, least);
  int runtime = 0;
  int driver = 0;
  check(cudaRuntimeGetVersion(&runtime));
  check(cudaDriverGetVersion(&driver));
  EXPECT_EQ(runtime, 13000);
  EXPECT_GE(driver, runtime);
  int value = 0;
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 1), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(12345), 0),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetDeviceProperties(&properties, -1), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST(Devices, ErrorsHaveNamesAndTexts) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  EXPECT_STREQ(cudaGetErrorName(cudaSuccess), "cudaSuccess");
  EXPECT_STREQ(cudaGetErrorName(static_cast<cudaError_t>(123)), "unrecognized error code");
  EXPECT_STREQ(cudaGetErrorString(static_cast<cudaError_t>(123)), "unrecognized error code");
}

TEST(Devices, NoneIsAnErrorOfEachCall) {
  expect_in_child("SHARDREC_SIMT_DEVICES", "0", [] {
    int count = -1;
    EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
    EXPECT_EQ(count, -1);  // nothing is written
    void* block = nullptr;
    cudaStream_t stream{};
    EXPECT_EQ(cudaMalloc(&block, 1), cudaErrorNoDevice);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, 0), cudaErrorNoDevice);
    EXPECT_EQ(cudaSetDevice(0), cudaErrorNoDevice);
    EXPECT_EQ(cudaGetLastError(), cudaErrorNoDevice);
  });
}

TEST(Devices, NoDriverIsAnErrorOfItsOwn) {
  expect_in_child("SHARDREC_SIMT_DEVICES", "-1", [] {
    int count = -1;
    EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
    EXPECT_EQ(count, -1);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInsufficientDriver);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInsufficientDriver);
    int version = -1;
    EXPECT_EQ(cudaDriverGetVersion(&version), cudaSuccess);
    EXPECT_EQ(version, 0);
    EXPECT_EQ(cudaRuntimeGetVersion(&version), cudaSuccess);
    EXPECT_EQ(version, 13000);
  });
}

__global__ void store_sum(const int* from, int* to) { *to = *from + 1; }

TEST(Devices, SeveralHaveStreamsAndMemoryOfTheirOwn) {
  expect_in_child("SHARDREC_SIMT_DEVICES", "3", [] {
    int count = 0;
    check(cudaGetDeviceCount(&count));
    EXPECT_EQ(count, 3);
    Queue first;
    int* from = first.upload(std::vector<int>{7});
    first.wait();
    check(cudaSetDevice(2));
    Queue second;
    int* to = second.allocate<int>(1);
    int device = 0;
    check(cudaStreamGetDevice(second.stream(), &device));
    EXPECT_EQ(device, 2);
    cudaPointerAttributes attributes{};
    check(cudaPointerGetAttributes(&attributes, to));
    EXPECT_EQ(attributes.device, 2);
    second.run(store_sum, 1, 1, 0, from, to);  // the other device's memory can be read
    EXPECT_EQ(second.download(to, 1)[0], 8);
    // A stream and an event of another device than the current one and the event's.
    EXPECT_EQ(launch(store_sum, 1, 1, 0, first.stream(), from, to), cudaErrorInvalidResourceHandle);
    cudaEvent_t event{};
    check(cudaEventCreateWithFlags(&event, cudaEventDefault));
    EXPECT_EQ(cudaEventRecord(event, first.stream()), cudaErrorInvalidResourceHandle);
    check(cudaEventRecord(event, second.stream()));
    check(cudaStreamWaitEvent(first.stream(), event));
    check(cudaEventDestroy(event));
    // What breaks one leaves the others whole.
    simt_fail_operation(1, cudaErrorIllegalAddress);
    check(cudaMemsetAsync(to, 0, sizeof(int), second.stream()));
    EXPECT_EQ(cudaStreamSynchronize(second.stream()), cudaErrorIllegalAddress);
    check(cudaSetDevice(0));
    check(cudaStreamSynchronize(first.stream()));
    simt_repair_devices();
  });
}

TEST(Devices, HaveAsMuchMemoryAsTheEnvironmentSays) {
  expect_in_child("SHARDREC_SIMT_MEMORY", "100000", [] {
    size_t available = 0;
    size_t total = 0;
    check(cudaMemGetInfo(&available, &total));
    EXPECT_EQ(total, 100000U);
    EXPECT_EQ(available, 100000U);
    void* block = nullptr;
    void* other = nullptr;
    EXPECT_EQ(cudaMalloc(&block, 60000), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&other, 40001), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaMalloc(&other, 40000), cudaSuccess);
    check(cudaFree(block));
    check(cudaFree(other));
  });
}

TEST(Devices, TheEnvironmentNamesTheAllocationThatFails) {
  expect_in_child("SHARDREC_SIMT_FAIL_ALLOCATION", "2", [] {
    void* block = nullptr;
    void* other = nullptr;
    EXPECT_EQ(cudaMallocHost(&block, 10), cudaSuccess);
    EXPECT_EQ(cudaMallocHost(&other, 10), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaMallocHost(&other, 10), cudaSuccess);
    check(cudaFreeHost(block));
    check(cudaFreeHost(other));
  });
}

__global__ void take_turns(int* next, int* out) { out[threadIdx.x] = atomicAdd(next, 1); }
std::vector<int> turns() {
  Queue queue;
  int* next = queue.upload(std::vector<int>{0});
  int* out = queue.allocate<int>(40);
  queue.run(take_turns, 1, 40, 0, next, out);
  return queue.download(out, 40);
}
TEST(Devices, TheEnvironmentNamesTheOrderOfThreads) {
  expect_in_child("SHARDREC_SIMT_ORDER", "descending", [] {
    const std::vector<int> order = turns();
    for (int i = 0; i < 40; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], 39 - i);
  });
  expect_in_child("SHARDREC_SIMT_ORDER", "random:5", [] {
    const std::vector<int> order = turns();
    simt_set_order(2, 5);
    EXPECT_EQ(turns(), order);
    simt_set_order(2, 6);
    EXPECT_NE(turns(), order);
  });
}

TEST(Devices, AnEnvironmentThatSaysNothingIsRefused) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  for (const auto& [variable, value] :
       {std::pair{"SHARDREC_SIMT_ORDER", "backwards"}, std::pair{"SHARDREC_SIMT_DEVICES", "many"},
        std::pair{"SHARDREC_SIMT_MEMORY", "1G"}}) {
    setenv(variable, value, 1);
    int count = 0;
    EXPECT_DEATH(cudaGetDeviceCount(&count), std::string(variable) + "=" + value + ": expected");
    unsetenv(variable);
  }
}

// ---- errors of enqueued work

TEST(BrokenDevice, FailsEachLaterCallAndDoesNothingMore) {
  const int64_t allocations = simt_live_allocations();
  const int64_t handles = simt_live_handles();
  cudaStream_t stream{};
  cudaEvent_t event{};
  int* values = nullptr;
  int* pinned = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  check(cudaEventCreateWithFlags(&event, cudaEventDefault));
  check(cudaMallocAsync(&values, 2 * sizeof(int), stream));
  check(cudaMallocHost(&pinned, 2 * sizeof(int)));
  pinned[0] = pinned[1] = 3;
  check(cudaStreamSynchronize(stream));
  simt_fail_operation(2, cudaErrorLaunchFailure);
  check(cudaMemcpyAsync(values, pinned, sizeof(int), cudaMemcpyHostToDevice, stream));
  check(launch(store_sum, 1, 1, 0, stream, values, values + 1));  // this one breaks
  // Enqueued in time or refused: it does not take place.
  bool called = false;
  static_cast<void>(cudaMemsetAsync(pinned, 0, 2 * sizeof(int), stream));
  static_cast<void>(
      cudaLaunchHostFunc(stream, [](void* flag) { *static_cast<bool*>(flag) = true; }, &called));
  static_cast<void>(cudaEventRecord(event, stream));
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaEventSynchronize(event), cudaErrorLaunchFailure);
  EXPECT_EQ(pinned[0], 3);
  EXPECT_FALSE(called);
  int* more = nullptr;
  EXPECT_EQ(cudaMalloc(&more, 4), cudaErrorLaunchFailure);
  EXPECT_EQ(launch(store_sum, 1, 1, 0, stream, values, values + 1), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaSetDevice(0), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure) << "it stays";
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorLaunchFailure);
  // What was made can be destroyed nevertheless.
  EXPECT_EQ(cudaFreeAsync(values, stream), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaFreeHost(pinned), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaEventDestroy(event), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorLaunchFailure);
  EXPECT_EQ(simt_live_allocations(), allocations);
  EXPECT_EQ(simt_live_handles(), handles);
  simt_repair_devices();
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  Queue queue;
  EXPECT_EQ(queue.download(queue.upload(std::vector<int>{4}), 1)[0], 4);
}

}  // namespace
}  // namespace shardrec::test
