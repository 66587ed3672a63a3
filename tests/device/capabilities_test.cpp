// What shardrec_capabilities_json says of CUDA devices: each of them where there are some, and in one sentence why there
// are none. Each test asks in a process of its own, which has loaded no plug-in and used no device.
#include <nlohmann/json.hpp>

#include "device/device_arrays.h"
#include "device/in_child.h"
#include "device/rank_on_device.h"

namespace shardrec::test {
namespace {

nlohmann::json capabilities() {
  char* text = nullptr;
  EXPECT_OK(shardrec_capabilities_json(&text));
  return nlohmann::json::parse(take(text));
}

// Why there is no such device; empty where there is.
std::string why_not(const char* name) {
  int32_t is = -1;
  char* reason = nullptr;
  EXPECT_OK(shardrec_available(SHARDREC_CAPABILITY_DEVICE, name, &is, &reason));
  const std::string text = take(reason);
  EXPECT_EQ(is, text.empty() ? 1 : 0) << name;
  return text;
}

TEST(CapabilitiesOfDevices, DescribeEachDeviceAndUseNone) {
  if (!is_on_cpu()) GTEST_SKIP() << "only CUDA on the CPU has as many devices as are asked for";
  expect_in_child("SHARDREC_SIMT_DEVICES", "3", [] {
    setenv("SHARDREC_SIMT_MEMORY", "1000000", 1);
    const nlohmann::json found = capabilities();
    EXPECT_EQ(found.at("devices"), nlohmann::json({"cpu", "cuda"}));
    EXPECT_TRUE(found.at("cuda_missing").is_null()) << found;
    ASSERT_EQ(found.at("cuda_devices").size(), 3U);
    for (int index = 0; index < 3; ++index) {
      const nlohmann::json& device = found.at("cuda_devices")[static_cast<size_t>(index)];
      EXPECT_EQ(device.at("index"), index);
      EXPECT_EQ(device.at("name"), "CUDA on the CPU");
      EXPECT_EQ(device.at("compute_capability"), "9.0");
      EXPECT_EQ(device.at("memory_bytes"), 1000000);
      EXPECT_TRUE(device.at("free_bytes").is_null()) << "nothing has used it";
    }
    for (const char* name : {"cuda", "cuda:0", "cuda:2"}) EXPECT_EQ(why_not(name), "");
    EXPECT_EQ(why_not("cuda:3"),
              "there is no device \"cuda:3\"; this process has 3, from \"cuda:0\" on");
  });
}

TEST(CapabilitiesOfDevices, KnowWhatIsFreeOnThoseThatAreUsed) {
  if (!is_on_cpu()) GTEST_SKIP() << "only CUDA on the CPU has as many devices as are asked for";
  expect_in_child("SHARDREC_SIMT_DEVICES", "2", [] {
    setenv("SHARDREC_SIMT_MEMORY", "1000000", 1);
    const auto stream = std::make_shared<compute::cuda::host::Stream>(1);
    const auto memory = compute::cuda::host::make_memory(stream);
    const auto block = memory->allocate_zeros(300000);
    stream->wait();
    const nlohmann::json devices = capabilities().at("cuda_devices");
    EXPECT_TRUE(devices.at(0).at("free_bytes").is_null());
    const int64_t free_bytes = devices.at(1).at("free_bytes");
    EXPECT_LE(free_bytes, 700000);
    EXPECT_GT(free_bytes, 600000);
  });
}

TEST(CapabilitiesOfDevices, SayThatThereIsNoDeviceOrNoDriver) {
  if (!is_on_cpu())
    GTEST_SKIP() << "only CUDA on the CPU does without a driver when it is asked to";
  for (const auto& [devices, reason] :
       {std::pair{"0", "CUDA sees no devices"},
        std::pair{"-1", "CUDA could not count its devices: CUDA driver version is insufficient"}}) {
    expect_in_child("SHARDREC_SIMT_DEVICES", devices, [text = reason] {
      const nlohmann::json found = capabilities();
      EXPECT_EQ(found.at("devices"), nlohmann::json({"cpu"}));
      EXPECT_EQ(found.at("cuda_devices").size(), 0U);
      const std::string missing = found.at("cuda_missing");
      EXPECT_TRUE(missing.starts_with(text)) << missing;
    });
  }
}

TEST(CapabilitiesOfDevices, AreWhatCallsSayWhereThereIsNoDevice) {
  if (!is_on_cpu()) GTEST_SKIP() << "only CUDA on the CPU has as few devices as are asked for";
  expect_in_child("SHARDREC_SIMT_DEVICES", "0", [] {
    const Rank rank(0);
    EXPECT_EQ(rank.status(), SHARDREC_INVALID_ARGUMENT);
    EXPECT_TRUE(contains(shardrec_last_error(),
                         "device 0 does not exist: this process sees 0 CUDA devices"))
        << shardrec_last_error();
  });
}

TEST(CapabilitiesOfDevices, SayWhatToInstallWhereThereIsNoPlugin) {
  expect_in_child("SHARDREC_PLUGIN_PATH", "/nowhere", [] {
    const nlohmann::json found = capabilities();
    EXPECT_EQ(found.at("devices"), nlohmann::json({"cpu"}));
    EXPECT_EQ(found.at("cuda_devices").size(), 0U);
    const std::string missing = found.at("cuda_missing");
    EXPECT_TRUE(missing.starts_with("CUDA devices need the CUDA plug-in ")) << missing;
    EXPECT_TRUE(contains(missing, "/nowhere/libshardrec_cuda.so.")) << missing;
  });
}

TEST(CapabilitiesOfDevices, AreTextWhateverThePathsAre) {
  expect_in_child("SHARDREC_PLUGIN_PATH", "/\xff",
                  [] { EXPECT_TRUE(capabilities().at("cuda_missing").is_string()); });
}

}  // namespace
}  // namespace shardrec::test
