// Launches: what kernels get, and the errors of those that cannot be.
#include "orders.h"

namespace shardrec::test {
namespace {

struct Arguments {
  int* out;
  long long values[20];
};
__global__ void store_arguments(Arguments arguments, short small, double large) {
  for (int i = 0; i < 20; ++i) arguments.out[i] = static_cast<int>(arguments.values[i]);
  arguments.out[20] = small;
  arguments.out[21] = static_cast<int>(large);
}

TEST(Launch, CopiesTheArgumentsWhenItIsCalled) {
  Queue queue;
  Arguments arguments{.out = queue.allocate<int>(22), .values = {}};
  for (int i = 0; i < 20; ++i) arguments.values[i] = 100 + i;
  int converted = -7;
  queue.run(store_arguments, 1, 1, 0, arguments, converted, 2.5F);
  for (long long& value : arguments.values) value = 0;
  converted = 0;
  const std::vector<int> out = queue.download(arguments.out, 22);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(out[static_cast<size_t>(i)], 100 + i);
  EXPECT_EQ(out[20], -7);
  EXPECT_EQ(out[21], 2);
}

__global__ void store_indices(uint4* out) {
  out[blockIdx.x * blockDim.x + threadIdx.x] =
      make_uint4(threadIdx.x, blockIdx.x, blockDim.x, gridDim.x);
  if (threadIdx.y + threadIdx.z + blockIdx.y + blockIdx.z != 0) __trap();
  if (blockDim.y * blockDim.z * gridDim.y * gridDim.z != 1) __trap();
}

TEST(Launch, TellsEachThreadWhereItIs) {
  Queue queue;
  uint4* device = queue.allocate<uint4>(3 * 70);
  queue.run(store_indices, 3, 70, 0, device);
  const std::vector<uint4> out = queue.download(device, 3 * 70);
  for (unsigned i = 0; i < out.size(); ++i) {
    EXPECT_EQ(out[i].x, i % 70);
    EXPECT_EQ(out[i].y, i / 70);
    EXPECT_EQ(out[i].z, 70U);
    EXPECT_EQ(out[i].w, 3U);
  }
}

__global__ void count_what_is_left(unsigned* out) {
  unsigned* memory = static_cast<unsigned*>(simt::shared_memory());
  if (simt::shared_bytes() != 256) __trap();
  if (memory[threadIdx.x] != 0xFFFFFFFF) atomicAdd(out, 1);
  __syncthreads();
  memory[threadIdx.x] = threadIdx.x;
}

TEST(Launch, GivesEachBlockSharedMemoryFullOfGarbage) {
  Queue queue;
  unsigned* device = queue.upload(std::vector<unsigned>{0});
  queue.run(count_what_is_left, 4, 64, 256, device);
  EXPECT_EQ(queue.download(device, 1)[0], 0U);
}

__global__ void do_nothing(int* /*out*/) {}
__global__ void do_nothing_else(int* /*out*/) {}

// The error is returned, kept, and gone when it was asked for.
void expect_refused(cudaError_t wanted, cudaError_t got) {
  EXPECT_EQ(got, wanted);
  EXPECT_EQ(cudaPeekAtLastError(), wanted);
  EXPECT_EQ(cudaGetLastError(), wanted);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(Launch, RefusesShapesThatADeviceCannotRun) {
  Queue queue;
  const auto run = [&](dim3 grid, dim3 block, size_t bytes = 0) {
    return launch(do_nothing, grid, block, bytes, queue.stream(), static_cast<int*>(nullptr));
  };
  EXPECT_EQ(run(1, 1024), cudaSuccess);
  expect_refused(cudaErrorInvalidConfiguration, run(0, 32));
  expect_refused(cudaErrorInvalidConfiguration, run(0x80000000, 32));
  expect_refused(cudaErrorInvalidConfiguration, run(1, 0));
  expect_refused(cudaErrorInvalidConfiguration, run(1, 1025));
  expect_refused(cudaErrorInvalidConfiguration, run(dim3(1, 2), 32));
  expect_refused(cudaErrorInvalidConfiguration, run(1, dim3(8, 1, 2)));
}

TEST(Launch, TakesAsMuchSharedMemoryAsTheKernelWasAllowed) {
  Queue queue;
  int most = 0;
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  const auto run = [&](void (*kernel)(int*), int bytes) {
    return launch(kernel, 1, 32, static_cast<size_t>(bytes), queue.stream(), nullptr);
  };
  EXPECT_EQ(run(do_nothing, 48 << 10), cudaSuccess);
  expect_refused(cudaErrorInvalidValue, run(do_nothing, (48 << 10) + 1));
  check(cudaFuncSetAttribute(do_nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, most));
  EXPECT_EQ(run(do_nothing, most), cudaSuccess);
  expect_refused(cudaErrorInvalidValue, run(do_nothing, most + 1));
  expect_refused(cudaErrorInvalidValue, run(do_nothing_else, most));
  expect_refused(
      cudaErrorInvalidValue,
      cudaFuncSetAttribute(do_nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, most + 1));
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, do_nothing));
  EXPECT_EQ(attributes.maxDynamicSharedSizeBytes, most);
  EXPECT_EQ(attributes.maxThreadsPerBlock, 1024);
  check(cudaFuncGetAttributes(&attributes, do_nothing_else));
  EXPECT_EQ(attributes.maxDynamicSharedSizeBytes, 48 << 10);
}

TEST(Launch, RefusesKernelsAndStreamsThatAreNone) {
  Queue queue;
  void (*none)(int*) = nullptr;
  expect_refused(cudaErrorInvalidDeviceFunction,
                 launch(none, 1, 32, 0, queue.stream(), static_cast<int*>(nullptr)));
  expect_refused(cudaErrorInvalidResourceHandle,
                 launch(do_nothing, 1, 32, 0, reinterpret_cast<cudaStream_t>(&queue), nullptr));
  testing::internal::CaptureStderr();
  expect_refused(cudaErrorNotSupported, launch(do_nothing, 1, 32, 0, nullptr, nullptr));
  EXPECT_NE(testing::internal::GetCapturedStderr().find("a default stream was named"),
            std::string::npos);
}

}  // namespace
}  // namespace shardrec::test
