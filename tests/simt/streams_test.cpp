// Streams and events: order, waits, and the errors of handles that are none.
#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "queue.h"
#include "simt/control.h"

namespace shardrec::test {
namespace {

class Event {
 public:
  explicit Event(unsigned flags = cudaEventDefault) {
    check(cudaEventCreateWithFlags(&event_, flags));
  }
  ~Event() { check(cudaEventDestroy(event_)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return event_; }  // NOLINT(google-explicit-constructor)

 private:
  cudaEvent_t event_{};
};

// Holds up a stream until it is opened.
class Gate {
 public:
  explicit Gate(cudaStream_t stream) { check(cudaLaunchHostFunc(stream, wait, this)); }
  void open() { open_ = true; }

 private:
  static void wait(void* gate) {
    while (!static_cast<Gate*>(gate)->open_) std::this_thread::yield();
  }
  std::atomic<bool> open_{false};
};

__global__ void append(int* list, int value) { list[++list[0]] = value; }
__global__ void move_sum(const int* from, int* to) { *to = *from + 1; }

TEST(Streams, CarryOutOperationsInTheirOrder) {
  Queue queue;
  int* list = queue.upload(std::vector<int>(6, 0));
  for (int i = 1; i <= 5; ++i) queue.run(append, 1, 1, 0, list, i * 10);
  EXPECT_EQ(queue.download(list, 6), (std::vector<int>{5, 10, 20, 30, 40, 50}));
}

TEST(Streams, DoNotWaitForEachOtherUnlessTheyAreTold) {
  Queue slow;
  Queue quick;
  Gate gate(slow.stream());
  quick.wait();
  EXPECT_EQ(cudaStreamQuery(quick.stream()), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(slow.stream()), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
  gate.open();
  slow.wait();
  EXPECT_EQ(cudaStreamQuery(slow.stream()), cudaSuccess);
}

TEST(Streams, PassANumberOnByEvents) {
  Queue one;
  Queue two;
  Event there;
  Event back;
  int* a = one.upload(std::vector<int>{0});
  int* b = two.allocate<int>(1);
  for (int round = 0; round < 50; ++round) {
    one.run(move_sum, 1, 1, 0, a, a);
    check(cudaEventRecord(there, one.stream()));
    check(cudaStreamWaitEvent(two.stream(), there, 0));
    two.run(move_sum, 1, 1, 0, a, b);
    check(cudaEventRecord(back, two.stream()));
    check(cudaStreamWaitEvent(one.stream(), back));
    check(cudaMemcpyAsync(a, b, sizeof(int), cudaMemcpyDefault, one.stream()));
  }
  EXPECT_EQ(one.download(a, 1)[0], 100);
  two.wait();
}

TEST(Streams, RunHostFunctionsInTheirOrderWithSignalsBlocked) {
  struct Seen {
    int value = 0;
    bool blocked = false;
    std::thread::id thread;
    cudaError_t call = cudaSuccess;
  } seen;
  Queue queue;
  check(cudaLaunchHostFunc(
      queue.stream(),
      [](void* data) {
        auto& into = *static_cast<Seen*>(data);
        sigset_t mask;
        pthread_sigmask(SIG_BLOCK, nullptr, &mask);
        into.blocked = sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGSEGV) == 0;
        into.thread = std::this_thread::get_id();
        into.call = cudaStreamQuery(nullptr);
        into.value = 5;
      },
      &seen));
  queue.wait();
  EXPECT_EQ(seen.value, 5);
  EXPECT_TRUE(seen.blocked);
  EXPECT_NE(seen.thread, std::this_thread::get_id());
  EXPECT_EQ(seen.call, cudaErrorNotPermitted);  // no calls of the runtime in there
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(Streams, FinishTheirWorkWhenTheyAreDestroyed) {
  cudaStream_t stream{};
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -1));
  int device = -1;
  check(cudaStreamGetDevice(stream, &device));
  EXPECT_EQ(device, 0);
  std::atomic<bool> done{false};
  Gate gate(stream);
  check(cudaLaunchHostFunc(
      stream, [](void* flag) { *static_cast<std::atomic<bool>*>(flag) = true; }, &done));
  check(cudaStreamDestroy(stream));
  EXPECT_FALSE(done);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  gate.open();
  while (!done) std::this_thread::yield();
}

// Two ranks as threads, each with a stream of its own on one device.
TEST(Streams, OfTwoThreadsWorkAtOnce) {
  std::vector<int> results(2);
  const auto run = [&](int number) {
    Queue queue;
    int* value = queue.upload(std::vector<int>{number * 1000});
    for (int step = 0; step < 200; ++step) queue.run(move_sum, 1, 1, 0, value, value);
    results[static_cast<size_t>(number)] = queue.download(value, 1)[0];
  };
  std::thread other([&] { run(1); });
  run(0);
  other.join();
  EXPECT_EQ(results, (std::vector<int>{200, 1200}));
}

TEST(Events, StandForTheLastRecord) {
  Queue queue;
  Event event(cudaEventDisableTiming);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);  // never recorded: nothing to wait for
  check(cudaEventSynchronize(event));
  check(cudaStreamWaitEvent(queue.stream(), event));
  check(cudaEventRecord(event, queue.stream()));
  check(cudaEventSynchronize(event));
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(queue.stream()), cudaSuccess);
  Gate gate(queue.stream());
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  check(cudaEventRecord(event, queue.stream()));
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
  gate.open();
  check(cudaEventSynchronize(event));
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
}

// A wait is for the record there was when it was asked for, whatever is recorded later.
TEST(Events, AreWaitedForAsTheyWereRecordedThen) {
  Queue one;
  Queue two;
  Event event;
  check(cudaEventRecord(event, one.stream()));
  check(cudaStreamWaitEvent(two.stream(), event));
  Gate gate(one.stream());
  check(cudaEventRecord(event, one.stream()));
  two.wait();
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  gate.open();
  one.wait();
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
}

TEST(Events, MayBeDestroyedWhileStreamsWaitForThem) {
  Queue one;
  Queue two;
  Gate gate(one.stream());
  {
    Event event;
    check(cudaEventRecord(event, one.stream()));
    check(cudaStreamWaitEvent(two.stream(), event));
  }
  EXPECT_EQ(cudaStreamQuery(two.stream()), cudaErrorNotReady);
  gate.open();
  two.wait();
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
}

TEST(Events, MeasureTimeUnlessTheyWereToldNotTo) {
  Queue queue;
  Event start;
  Event end;
  Event untimed(cudaEventDisableTiming);
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorInvalidResourceHandle);
  check(cudaEventRecord(start, queue.stream()));
  // The time that is measured.
  check(cudaLaunchHostFunc(
      queue.stream(), [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(3)); },
      nullptr));
  check(cudaEventRecord(untimed, queue.stream()));
  check(cudaEventRecord(end, queue.stream()));
  queue.wait();
  check(cudaEventElapsedTime(&milliseconds, start, end));
  EXPECT_GE(milliseconds, 3.0F);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, untimed), cudaErrorInvalidResourceHandle);
  const int64_t early = simt_early_elapsed_times();
  Gate gate(queue.stream());
  check(cudaEventRecord(end, queue.stream()));
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorNotReady);
  EXPECT_EQ(simt_early_elapsed_times(), early + 1);
  gate.open();
  queue.wait();
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
}

TEST(Handles, ThatAreNoneAreRefused) {
  Queue queue;
  cudaEvent_t destroyed{};
  check(cudaEventCreateWithFlags(&destroyed, cudaEventDefault));
  check(cudaEventDestroy(destroyed));
  const auto no_stream = reinterpret_cast<cudaStream_t>(&queue);
  int device = 0;
  EXPECT_EQ(cudaEventDestroy(destroyed), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(destroyed, queue.stream()), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventQuery(destroyed), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventSynchronize(destroyed), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamWaitEvent(queue.stream(), destroyed), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamSynchronize(no_stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamDestroy(no_stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamGetDevice(no_stream, &device), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaLaunchHostFunc(no_stream, [](void*) {}, nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaErrorNotSupported);
  EXPECT_EQ(cudaStreamCreateWithFlags(nullptr, 0), cudaErrorInvalidValue);
  cudaStream_t stream{};
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, 2), cudaErrorInvalidValue);
  cudaEvent_t event{};
  EXPECT_EQ(cudaEventCreateWithFlags(&event, 8), cudaErrorInvalidValue);
  EXPECT_EQ(cudaLaunchHostFunc(queue.stream(), nullptr, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

// Events alone: a caller that names no stream is joined there.
TEST(Streams, EventsGoThroughTheLegacyDefaultStream) {
  Queue queue;
  cudaEvent_t before{};
  cudaEvent_t behind{};
  ASSERT_EQ(cudaEventCreateWithFlags(&before, cudaEventDisableTiming), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&behind, cudaEventDisableTiming), cudaSuccess);
  simt_hold_stream(reinterpret_cast<int64_t>(queue.stream()));
  ASSERT_EQ(cudaEventRecord(before, queue.stream()), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(nullptr, before), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(behind, nullptr), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(behind), cudaErrorNotReady);
  simt_go_on();
  EXPECT_EQ(cudaEventSynchronize(behind), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(before), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(behind), cudaSuccess);
}

// Of one device, each thread has its own.
TEST(Streams, ThreadsHaveDefaultStreamsOfTheirOwn) {
  Queue queue;
  const auto of_thread = reinterpret_cast<cudaStream_t>(2);  // cudaStreamPerThread
  cudaEvent_t before{};
  cudaEvent_t behind{};
  ASSERT_EQ(cudaEventCreateWithFlags(&before, cudaEventDisableTiming), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&behind, cudaEventDisableTiming), cudaSuccess);
  simt_hold_stream(reinterpret_cast<int64_t>(queue.stream()));
  ASSERT_EQ(cudaEventRecord(before, queue.stream()), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(of_thread, before), cudaSuccess);
  std::thread([&] {
    EXPECT_EQ(cudaEventRecord(behind, of_thread), cudaSuccess);
    EXPECT_EQ(cudaEventSynchronize(behind), cudaSuccess)
        << "it waits for nothing of another thread";
  }).join();
  ASSERT_EQ(cudaEventRecord(behind, of_thread), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(behind), cudaErrorNotReady);
  simt_go_on();
  EXPECT_EQ(cudaEventSynchronize(behind), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(before), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(behind), cudaSuccess);
}

}  // namespace
}  // namespace shardrec::test
