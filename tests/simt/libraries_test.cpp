// Steps of libraries with kernels of their own, as streams take them.
#include <atomic>
#include <vector>

#include "queue.h"
#include "simt/control.h"

namespace shardrec::test {
namespace {

int64_t number_of(const Queue& queue) { return reinterpret_cast<int64_t>(queue.stream()); }

// What the steps of a call work on.
struct Call {
  int* memory;  // of the device
  std::vector<int> taken;

  static void wait(void* call) { static_cast<Call*>(call)->taken.push_back(1); }
  static void write(void* call) {
    *static_cast<Call*>(call)->memory += 41;
    static_cast<Call*>(call)->taken.push_back(2);
  }
};

constexpr simt_step kSteps[] = {{Call::wait, 0}, {Call::write, 1}, {Call::wait, 0}};

TEST(Libraries, EnqueueStepsThatTakePlaceInOrder) {
  Queue queue;
  Call call{queue.upload(std::vector<int>{1}), {}};
  EXPECT_EQ(simt_enqueue_steps(number_of(queue), kSteps, 3, &call), cudaSuccess);
  EXPECT_EQ(queue.download(call.memory, 1), std::vector<int>{42});
  EXPECT_EQ(call.taken, (std::vector<int>{1, 2, 1}));
}

TEST(Libraries, StepsOnABrokenDeviceAreLeftOut) {
  Queue queue;
  Call call{queue.upload(std::vector<int>{1}), {}};
  queue.wait();
  simt_fail_operation(1, cudaErrorLaunchFailure);
  EXPECT_EQ(simt_enqueue_steps(number_of(queue), kSteps, 3, &call), cudaSuccess);
  // Told as soon as it is known: the last step may still be to come.
  EXPECT_EQ(cudaStreamSynchronize(queue.stream()), cudaErrorLaunchFailure);
  EXPECT_EQ(simt_enqueue_steps(number_of(queue), kSteps, 3, &call), cudaErrorLaunchFailure);
  simt_repair_devices();
  cudaGetLastError();
  queue.wait();
  EXPECT_EQ(call.taken, (std::vector<int>{1, 1}));
}

// A kernel of a library, and how many copies of it there are.
struct Kernel {
  int* memory;  // of the device
  std::atomic<int> copies = 0;

  static void write(void* kernel) { *static_cast<Kernel*>(kernel)->memory += 1; }
  static void keep(void* kernel) { ++static_cast<Kernel*>(kernel)->copies; }
  static void drop(void* kernel) { --static_cast<Kernel*>(kernel)->copies; }
};

TEST(Libraries, KernelsBecomePartOfGraphs) {
  constexpr simt_kernel kKernel{Kernel::write, Kernel::keep, Kernel::drop};
  Queue queue;
  Kernel kernel{queue.upload(std::vector<int>{1})};
  EXPECT_EQ(simt_enqueue_kernel(number_of(queue), &kKernel, &kernel), cudaSuccess);
  EXPECT_EQ(queue.download(kernel.memory, 1), std::vector<int>{2});
  EXPECT_EQ(kernel.copies, 0);
  EXPECT_EQ(simt_thread_captures(), 0);
  check(cudaStreamBeginCapture(queue.stream(), cudaStreamCaptureModeRelaxed));
  EXPECT_EQ(simt_thread_captures(), 1);
  EXPECT_EQ(simt_stream_captures(number_of(queue)), 1);
  EXPECT_EQ(simt_enqueue_kernel(number_of(queue), &kKernel, &kernel), cudaSuccess);
  cudaGraph_t captured = nullptr;
  check(cudaStreamEndCapture(queue.stream(), &captured));
  EXPECT_EQ(simt_thread_captures(), 0);
  EXPECT_EQ(simt_stream_captures(number_of(queue)), 0);
  cudaGraphExec_t graph = nullptr;
  check(cudaGraphInstantiateWithFlags(&graph, captured, 0));
  check(cudaGraphDestroy(captured));
  EXPECT_EQ(queue.download(kernel.memory, 1), std::vector<int>{2});
  check(cudaGraphLaunch(graph, queue.stream()));
  check(cudaGraphLaunch(graph, queue.stream()));
  EXPECT_EQ(queue.download(kernel.memory, 1), std::vector<int>{4});
  EXPECT_GT(kernel.copies, 0);
  check(cudaGraphExecDestroy(graph));
  EXPECT_EQ(kernel.copies, 0);
}

TEST(Libraries, ACaptureFailsOnDemand) {
  Queue queue;
  int* const number = queue.upload(std::vector<int>{1});
  cudaGraph_t captured = nullptr;
  simt_fail_capture(2);
  for (const cudaError_t end : {cudaSuccess, cudaErrorStreamCaptureInvalidated, cudaSuccess}) {
    check(cudaStreamBeginCapture(queue.stream(), cudaStreamCaptureModeRelaxed));
    check(cudaMemsetAsync(number, 0, sizeof(int), queue.stream()));
    EXPECT_EQ(cudaStreamEndCapture(queue.stream(), &captured), end);
    if (captured != nullptr) check(cudaGraphDestroy(captured));
  }
  cudaGetLastError();
}

TEST(Libraries, AskForDevices) {
  Queue queue;
  EXPECT_EQ(simt_current_device(), 0);
  EXPECT_EQ(simt_device_of_stream(number_of(queue)), 0);
  EXPECT_EQ(simt_device_of_stream(number_of(queue) + 1), -1);
  EXPECT_NE(simt_enqueue_steps(number_of(queue) + 1, kSteps, 3, nullptr), cudaSuccess);
  cudaGetLastError();
}

}  // namespace
}  // namespace shardrec::test
