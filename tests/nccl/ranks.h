// Ranks of communicators over the plug-in, each in a thread of its own with a device, a stream and memory there; and
// what the tests' NCCL (fake_nccl.h) is told and asked.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/nccl/plugin.h"
#include "compute/cuda/host/plugin.h"
#include "fake_nccl.h"
#include "support/device_bytes.h"
#include "support/eventually.h"

namespace shardrec::test {

using Id = std::array<uint8_t, SHARDREC_NCCL_ID_BYTES>;

inline const shardrec_nccl_table& nccl() { return comm::nccl::table(); }

// A function of the tests' NCCL.
template <class Function>
Function* of_fake(const char* name) {
  nccl();
  void* const library = dlopen(SHARDREC_FAKE_NCCL, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) throw std::runtime_error("the tests' NCCL is not loaded");
  return std::bit_cast<Function*>(dlsym(library, name));
}
#define OF_FAKE(name) ::shardrec::test::of_fake<decltype(name)>(#name)

inline Id make_id() {
  Id id{};
  EXPECT_EQ(nccl().make_id(id.data()), SHARDREC_NCCL_OK);
  return id;
}

// What NCCL makes of a call that may be in progress when it returns.
inline shardrec_nccl_result settled(shardrec_nccl_comm* comm, shardrec_nccl_result result) {
  if (result != SHARDREC_NCCL_IN_PROGRESS) return result;
  const bool over = eventually([&] {
    result = nccl().progress(comm);
    return result != SHARDREC_NCCL_IN_PROGRESS;
  });
  EXPECT_TRUE(over) << "a call stays in progress";
  return result;
}

// A rank in the calling thread, whose current device is the rank's from now on.
class Rank {
 public:
  Rank(int number, int ranks, int device)
      : rank(number), size(ranks), stream(std::make_shared<compute::cuda::host::Stream>(device)) {
    compute::cuda::host::require(compute::cuda::host::table().enter_device(device),
                                 "enter the device");
  }

  // Begins a communicator; the result is that of the call.
  shardrec_nccl_result begin(const Id& id, shardrec_nccl_comm** out) const {
    return nccl().create(id.data(), rank, size, 0, out);
  }
  // Makes one.
  shardrec_nccl_comm* join(const Id& id) const {
    shardrec_nccl_comm* made = nullptr;
    const shardrec_nccl_result begun = begin(id, &made);
    EXPECT_EQ(begun, SHARDREC_NCCL_IN_PROGRESS);
    EXPECT_EQ(settled(made, begun), SHARDREC_NCCL_OK);
    return made;
  }
  // Its orderly end.
  static void leave(shardrec_nccl_comm* comm) {
    EXPECT_EQ(settled(comm, nccl().finalize(comm)), SHARDREC_NCCL_OK);
    EXPECT_EQ(nccl().destroy(comm), SHARDREC_NCCL_OK);
  }

  DeviceBytes bytes(const std::string& text) const {
    DeviceBytes there(stream, text.size());
    there.write(text.data());
    return there;
  }
  template <class T>
  DeviceBytes list(const std::vector<T>& values) const {
    DeviceBytes there(stream, values.size() * sizeof(T));
    there.write(values.data());
    return there;
  }
  template <class T>
  static std::vector<T> values(const DeviceBytes& there) {
    const std::string bytes = there.read();
    std::vector<T> out(bytes.size() / sizeof(T));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }

  int64_t in() const { return stream->number(); }

  const int rank;
  const int size;
  const std::shared_ptr<compute::cuda::host::Stream> stream;
};

// Runs ranks as threads, the ranks on so many devices in turn.
inline void run_ranks(int size, int devices, const std::function<void(Rank&)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&body, rank, size, devices] {
      Rank self(rank, size, rank % devices);
      body(self);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

class NcclTest : public ::testing::Test {
 protected:
  void SetUp() override {
    reset();
    OF_FAKE(fake_nccl_forget_violations)();
  }
  void TearDown() override {
    reset();
    EXPECT_TRUE(eventually([] { return OF_FAKE(fake_nccl_live)() == 0; }, 10))
        << OF_FAKE(fake_nccl_live)() << " communicators and operations are left";
    EXPECT_EQ(OF_FAKE(fake_nccl_violations)(), 0) << OF_FAKE(fake_nccl_last_violation)();
  }
  static void reset() {
    OF_FAKE(fake_nccl_set_polls)(0);
    OF_FAKE(fake_nccl_delay_init)(-1, 0);
    OF_FAKE(fake_nccl_set_async_error)(-1, 0);
    OF_FAKE(fake_nccl_set_hang)(-1, 0);
    OF_FAKE(fake_nccl_set_abort_is_seen)(0);
    OF_FAKE(fake_nccl_set_one_rank_per_device)(0);
    OF_FAKE(fake_nccl_set_call_time)(0);
  }
};

}  // namespace shardrec::test
