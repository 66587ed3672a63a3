// The failure contract (contract.h) where tables and sets of DDP parameters are on devices, emulated ones (tests/simt),
// and messages go from one to the other by CUDA IPC or by NCCL, the tests' own (tests/nccl/fake).
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "comm/remote/transport.h"
#include "failures/contract.h"

namespace shardrec::failures {
namespace {

// The host starts its jobs over Gloo; nccl: between devices NCCL carries what is sent.
class DeviceGroup : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!comm::remote::transport_available("gloo")) GTEST_SKIP() << "the plug-in was not built";
  }
  static JobOptions on_devices() {
    return {
        .engine = GetParam(),
        .environment = {"SHARDREC_TEST_DEVICES=2", "SHARDREC_SIMT_DEVICES=2",
                        "SHARDREC_PLUGIN_PATH=" SHARDREC_TEST_PLUGINS,
                        "SHARDREC_NCCL_LIBRARY=" SHARDREC_FAKE_NCCL, "SHARDREC_FAKE_NCCL_FATAL=1"},
        .on_devices = true};
  }
  static Trouble stop_in(const char* phase, int rank, int delay_us = 0) {
    Trouble trouble = trouble_in(phase, SIGSTOP, rank, delay_us);
    trouble.goes_on = true;
    return trouble;
  }
  // Of few processes, which form no third group.
  static JobOptions small() {
    JobOptions options = on_devices();
    options.count = 3;
    options.steps = 3;
    options.lonely = true;
    return options;
  }
};

// Before the all-reduce, in which the others already wait; and after it has sent messages that the others have not copied
// yet.
TEST_P(DeviceGroup, ARankThatIsKilledInAStepIsNamedToAllWithinASecond) {
  expect_contract({trouble_in("reduce", SIGKILL, 1), trouble_in("begin", SIGKILL, 1),
                   trouble_in("forward", SIGKILL, 0, 300)},
                  small());
}

class StopsOfDeviceGroups : public DeviceGroup {};

// Its device stops with it.
TEST_P(StopsOfDeviceGroups, AreTimeoutsAndARankThatGoesOnEnds) {
  JobOptions options = small();
  options.limit = 2;
  expect_contract({stop_in("forward", 1)}, options);
}

// Run by the test with the label "long".
TEST_P(DeviceGroup, DISABLED_DeathsInStepsAreSeenAndTheOthersGoOn) {
  for (const char* const phase : {"begin", "forward", "backward", "reduce", "sync"}) {
    std::vector<Trouble> troubles;
    for (const int delay_us : {0, 300, 2000}) {
      troubles.push_back(trouble_in(phase, SIGKILL, delay_us % 4, delay_us));
    }
    expect_contract(troubles, on_devices());
    if (HasFailure()) return;
  }
}
TEST_P(DeviceGroup, DISABLED_StopsInStepsAreSeenAndTheOthersGoOn) {
  for (const char* const phase : {"forward", "backward", "reduce", "sync"}) {
    std::vector<Trouble> troubles;
    for (const int delay_us : {0, 1000}) {
      troubles.push_back(stop_in(phase, 1 + delay_us % 3, delay_us));
    }
    expect_contract(troubles, on_devices());
    if (HasFailure()) return;
  }
}

TEST_P(DeviceGroup, DISABLED_StopsAreTimeoutsWhereWaitsHaveALimit) {
  JobOptions options = small();
  options.limit = 2;
  expect_contract({stop_in("forward", 1), stop_in("reduce", 2)}, options);
}

std::string name_of(const testing::TestParamInfo<const char*>& info) { return info.param; }

INSTANTIATE_TEST_SUITE_P(Over, DeviceGroup, testing::Values("gloo", "nccl"), name_of);
// By CUDA IPC a rank waits for the one that has stopped when it destroys what both have open, for seconds.
INSTANTIATE_TEST_SUITE_P(Over, StopsOfDeviceGroups, testing::Values("nccl"), name_of);

}  // namespace
}  // namespace shardrec::failures
