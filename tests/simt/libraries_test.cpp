// Steps of libraries with kernels of their own, as streams take them.
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
