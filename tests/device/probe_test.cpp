// The probe of a device: what it says, and what it refuses. No test here depends on how fast anything is.
#include "compute/cuda/probe.h"

#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "device/device_arrays.h"
#include "device/in_child.h"
#include "shardrec/shardrec.hpp"

namespace shardrec::test {
namespace {

constexpr const char* kMemory = "SHARDREC_SIMT_MEMORY";
constexpr const char* kLittle = "8000000";

TEST(ProbeOfDevice, MeasuresEachCopyAndEachSizeOfRows) {
  if (!is_on_cpu()) GTEST_SKIP() << "only CUDA on the CPU has as little memory as is asked for";
  expect_in_child(kMemory, kLittle, [] {
    const nlohmann::json profile = nlohmann::json::parse(shardrec::probe_json("cuda:0"));
    EXPECT_EQ(profile.at("version"), 1);
    EXPECT_EQ(profile.at("machine"), nlohmann::json({{"device", "cuda:0"},
                                                     {"name", "CUDA on the CPU"},
                                                     {"compute_capability", "9.0"},
                                                     {"memory_bytes", 8000000},
                                                     {"l2_bytes", 4 << 20}}));
    EXPECT_EQ(profile.at("table_bytes"), 1 << 20);
    EXPECT_GT(profile.at("seconds"), 0);
    EXPECT_TRUE(profile.at("quiet").is_boolean());
    std::set<std::pair<std::string, std::string>> copies;
    for (const nlohmann::json& copy : profile.at("copies")) {
      EXPECT_GT(copy.at("gb_per_second"), 0);
      copies.emplace(copy.at("from"), copy.at("to"));
    }
    EXPECT_EQ(copies, (std::set<std::pair<std::string, std::string>>{
                          {"host", "device"}, {"device", "host"}, {"device", "device"}}));
    std::set<std::tuple<std::string, int, int>> rows;
    for (const nlohmann::json& row : profile.at("rows")) {
      EXPECT_GT(row.at("gb_per_second"), 0);
      rows.emplace(row.at("access"), row.at("row_bytes"), row.at("bag_length"));
    }
    EXPECT_EQ(rows.size(), 10U);
    for (const int row_bytes : {64, 128, 256, 512, 1024}) {
      EXPECT_TRUE(rows.contains({"gather", row_bytes, 1})) << row_bytes;
      EXPECT_TRUE(rows.contains({"gather", row_bytes, 20})) << row_bytes;
    }
  });
}

TEST(ProbeOfDevice, GivesItsMemoryBackAndReportsProgress) {
  auto* const live = of_plugin<int64_t()>("simt_live_allocations");
  if (live == nullptr) GTEST_SKIP() << "only CUDA on the CPU counts";
  expect_in_child(kMemory, kLittle, [live] {
    const shardrec::Control control;
    shardrec::probe_json("cuda:0", 0, &control);
    EXPECT_EQ(live(), 0);
    EXPECT_EQ(control.progress().done, 13);
    EXPECT_EQ(control.progress().total, 13);
  });
}

TEST(ProbeOfDevice, SaysThatTheDeviceFailedLateInIt) {
  if (!is_on_cpu()) GTEST_SKIP() << "only CUDA on the CPU fails on demand";
  expect_in_child(kMemory, kLittle, [] {
    constexpr int kIllegalAddress = 700;
    constexpr int64_t kOperations =
        13 * 4;  // of 13 measurements, a first one and three rounds at least
    of_plugin<void(int64_t, int)>("simt_fail_operation")(kOperations, kIllegalAddress);
    char* text = nullptr;
    EXPECT_EQ(shardrec_probe_json("cuda:0", 0, 0, nullptr, &text), SHARDREC_DEVICE_ERROR);
    EXPECT_TRUE(contains(shardrec_last_error(), "illegal memory access")) << shardrec_last_error();
    EXPECT_EQ(text, nullptr);
  });
}

TEST(ProbeOfDevice, IsCancelledBeforeItsFirstMeasurement) {
  if (!is_on_cpu()) GTEST_SKIP() << "only CUDA on the CPU has as little memory as is asked for";
  expect_in_child(kMemory, kLittle, [] {
    Control control;
    EXPECT_OK(shardrec_control_create(nullptr, control.out()));
    EXPECT_OK(shardrec_control_cancel(control));
    char* text = nullptr;
    EXPECT_EQ(shardrec_probe_json("cuda:0", 0, 0, control, &text), SHARDREC_CANCELLED);
    EXPECT_EQ(text, nullptr);
  });
}

TEST(ProbeOfDevice, RefusesWhatIsNoDevice) {
  char* text = nullptr;
  EXPECT_EQ(shardrec_probe_json("cuda:0", 0, 0, nullptr, nullptr), SHARDREC_INVALID_ARGUMENT);
  for (const char* name : {"cuda:-1", "cuda:1024", "cuda:", "cuda:1 ", "cuda1", "gpu", ""}) {
    EXPECT_EQ(shardrec_probe_json(name, 0, 0, nullptr, &text), SHARDREC_INVALID_ARGUMENT) << name;
    EXPECT_TRUE(contains(shardrec_last_error(), "\"cuda:0\" to \"cuda:1023\" is accepted"))
        << shardrec_last_error();
  }
  EXPECT_EQ(shardrec_probe_json("cuda", 1, 0, nullptr, &text), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(shardrec_probe_json("cuda", 0, 1, nullptr, &text), SHARDREC_UNSUPPORTED);
  EXPECT_TRUE(contains(shardrec_last_error(), "is not kept")) << shardrec_last_error();
  if (is_on_cpu()) {
    EXPECT_EQ(shardrec_probe_json("cuda:500", 0, 0, nullptr, &text), SHARDREC_INVALID_ARGUMENT);
    EXPECT_TRUE(contains(shardrec_last_error(), "device 500 does not exist"))
        << shardrec_last_error();
  }
  EXPECT_EQ(text, nullptr);
}

TEST(ProbeOfDevice, SaysWhatToInstallWhereThereIsNoPlugin) {
  expect_in_child("SHARDREC_PLUGIN_PATH", "/nowhere", [] {
    char* text = nullptr;
    EXPECT_EQ(shardrec_probe_json("cuda:0", 0, 0, nullptr, &text), SHARDREC_UNSUPPORTED);
    EXPECT_TRUE(contains(shardrec_last_error(), "CUDA devices need the CUDA plug-in"))
        << shardrec_last_error();
  });
}

TEST(ProbeOfDevice, TakesSizesThatFitIntoItsMemory) {
  for (const uint64_t free_bytes : {uint64_t{0}, uint64_t{5} << 20, uint64_t{1} << 30,
                                    uint64_t{24} << 30, uint64_t{140} << 30}) {
    const auto sizes = compute::cuda::device_probe_sizes(free_bytes);
    EXPECT_GE(sizes.gathered, 1024 * 20) << "a bag of each kind";
    EXPECT_LE(2 * sizes.copied, sizes.table);
    EXPECT_EQ(sizes.table % 1024, 0);
    // The table, the outputs, and ids, lengths and what is before each chunk.
    const int64_t taken = sizes.table + sizes.gathered + sizes.gathered / 4;
    if (free_bytes >= uint64_t{4} << 20) {
      EXPECT_LE(taken, static_cast<int64_t>(free_bytes));
    }
  }
  EXPECT_EQ(compute::cuda::device_probe_sizes(uint64_t{140} << 30).table, int64_t{4} << 30);
}

}  // namespace
}  // namespace shardrec::test
