// Every program that this file is linked to makes its collections with the back end that the environment
// names: SHARDREC_TEST_BACKEND=guarded, or cuda, which is the devices of the plug-in (SHARDREC_PLUGIN_PATH)
// in turn.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "comm/communicator.h"
#include "compute/backends/registry.h"
#include "compute/cuda/host/plugin.h"
#include "compute/cuda/host/sharing.h"
#include "guarded/backend.h"

namespace shardrec::test {
namespace {

// Of ranks in several processes, each begins with another one.
int32_t first_device() {
  for (const char* const variable : {"RANK", "OMPI_COMM_WORLD_RANK"}) {
    if (const char* const rank = std::getenv(variable)) return std::atoi(rank);
  }
  return 0;
}

// Devices in turn.
std::unique_ptr<compute::Backend> next_device(const compute::BackendOptions& options) {
  static std::atomic<int32_t> made{first_device()};
  int32_t devices = 0;
  compute::cuda::host::require(compute::cuda::host::table().count_devices(&devices),
                               "count its devices");
  compute::BackendOptions next = options;
  next.device = made.fetch_add(1) % std::max(devices, 1);
  return compute::backend_named("cuda").make(next);
}

// Before main.
const bool chosen = [] {
  const char* name = std::getenv("SHARDREC_TEST_BACKEND");
  if (name == nullptr) return false;
  if (std::strcmp(name, "guarded") == 0) {
    compute::add_backend({.name = "guarded", .on_host = true, .make = guarded_backend});
    compute::set_default_backend("guarded");
  } else if (std::strcmp(name, "cuda") == 0) {
    compute::add_backend({.name = "cuda in turn", .on_host = false, .make = next_device});
    compute::set_default_backend("cuda in turn");
  } else {
    std::fprintf(stderr, "SHARDREC_TEST_BACKEND=%s: the back ends for tests are guarded and cuda\n",
                 name);
    std::exit(2);
  }
  return true;
}();

// What the tests' NCCL (nccl/fake_nccl.h) has found, and what was left in it, when the tests have ended.
class NothingFoundInNccl final : public ::testing::Environment {
 public:
  void TearDown() override {
    const char* const file = std::getenv("SHARDREC_NCCL_LIBRARY");
    void* const library = file == nullptr ? nullptr : dlopen(file, RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(library, nullptr) << "no test was over NCCL";
    const auto found = std::bit_cast<int64_t (*)()>(dlsym(library, "fake_nccl_violations"));
    const auto left = std::bit_cast<int64_t (*)()>(dlsym(library, "fake_nccl_live"));
    const auto sent = std::bit_cast<int64_t (*)()>(dlsym(library, "fake_nccl_bytes_sent"));
    ASSERT_NE(found, nullptr);
    EXPECT_GT(sent(), 0) << "nothing went by NCCL";
    EXPECT_EQ(found(), 0);
    EXPECT_EQ(left(), 0);
  }
};

// Whether devices of processes were read by each other, when the tests have ended.
class BytesOfProcesses final : public ::testing::Environment {
 public:
  explicit BytesOfProcesses(bool expected) : expected_(expected) {}
  void TearDown() override {
    EXPECT_EQ(compute::cuda::host::bytes_from_processes() > 0, expected_)
        << compute::cuda::host::bytes_from_processes() << " bytes";
  }

 private:
  bool expected_;
};

// SHARDREC_TEST_BODIES=nccl: what goes between the devices of ranks goes by NCCL, whatever the engine; engine: it does so
// because of the engine. ipc: processes read each other's devices; hosts: they do not.
const bool by_nccl = [] {
  const char* name = std::getenv("SHARDREC_TEST_BODIES");
  if (name == nullptr) return false;
  if (std::strcmp(name, "ipc") == 0 || std::strcmp(name, "hosts") == 0) {
    ::testing::AddGlobalTestEnvironment(new BytesOfProcesses(name[0] == 'i'));  // gtest's
    return false;
  }
  if (std::strcmp(name, "nccl") == 0) {
    comm::set_default_device_bodies(comm::DeviceBodies::kNccl);
  } else if (std::strcmp(name, "engine") != 0) {
    std::fprintf(stderr, "SHARDREC_TEST_BODIES=%s: nccl, engine, ipc and hosts are accepted\n",
                 name);
    std::exit(2);
  }
  ::testing::AddGlobalTestEnvironment(new NothingFoundInNccl);  // gtest's
  return true;
}();

}  // namespace
}  // namespace shardrec::test
