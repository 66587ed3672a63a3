// Streams of a caller that a test holds until it lets them go on.
#pragma once

#include <chrono>
#include <thread>

#include "compute/cuda/host/stream.h"
#include "device/device_arrays.h"
#include "device/in_child.h"

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
  // Lets held streams go on while the calling thread is in `call`, which may wait for them.
  template <class Call>
  void go_on_during(const Call& call) {
    std::thread later([&] {
      // Late on purpose: the call may wait without sleeping, which nothing shows.
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      go_on_();
    });
    call();
    later.join();
  }

  compute::cuda::host::Stream caller_{0};
  void (*hold_)(int64_t) = nullptr;
  void (*go_on_)() = nullptr;
};

}  // namespace shardrec::test
