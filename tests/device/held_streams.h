// Streams that a test holds until it lets them go on: a caller's, or any.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "compute/cuda/host/stream.h"
#include "device/device_arrays.h"
#include "device/in_child.h"
#include "support/eventually.h"

namespace shardrec::test {

class HeldStreamsTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    hold_ = of_plugin<void(int64_t)>("simt_hold_stream");
    go_on_ = of_plugin<void()>("simt_go_on");
    if (hold_ == nullptr) GTEST_SKIP() << "only CUDA on the CPU holds streams and fails on demand";
  }
  void TearDown() override {
    if (go_on_ != nullptr) go_on_();
  }

  void hold() { hold_(caller_.number()); }
  // Lets held streams go on while the calling thread is in `call`, which may wait for them. Did it return behind
  // that? Where the machine is slow, also if it did not wait.
  template <class Call>
  bool go_on_during(const Call& call) {
    std::atomic<bool> goes_on = false;
    std::thread later([&] {
      // Late on purpose: the call may wait without sleeping, which nothing shows.
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      goes_on = true;
      go_on_();
    });
    call();
    const bool waited = goes_on;
    later.join();
    return waited;
  }

  // Does the call return while streams are held? They go on if it has not for long.
  template <class Call>
  bool returns_while_held(const Call& call) {
    std::atomic<bool> returned = false;
    bool in_time = false;
    std::thread watch([&] {
      in_time = eventually([&] { return returned.load(); });
      if (!in_time) go_on_();
    });
    call();
    returned = true;
    watch.join();
    return in_time;
  }

  compute::cuda::host::Stream caller_{0};
  void (*hold_)(int64_t) = nullptr;
  void (*go_on_)() = nullptr;
};

}  // namespace shardrec::test
