// Copies between devices ask for direct access once for each pair of devices, and are right without it.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "compute/cuda/host/memory.h"
#include "device/in_child.h"
#include "device/of_plugin.h"

namespace shardrec::test {
namespace {

using compute::Allocation;
using compute::cuda::host::make_memory;
using compute::cuda::host::PinnedMemory;
using compute::cuda::host::Stream;

constexpr size_t kBytes = 1000;

// What CUDA on the CPU counts.
struct Peers {
  void (*set_access)(int) = of_plugin<void(int)>("simt_set_peer_access");
  int64_t (*questions)() = of_plugin<int64_t()>("simt_peer_questions");
  uint64_t (*pools_reached)(int) = of_plugin<uint64_t(int)>("simt_pools_reached");
  uint64_t (*enabled)(int) = of_plugin<uint64_t(int)>("simt_peers_enabled");
  int (*last_error)() = of_plugin<int()>("simt_last_error");
};

// Memory of a device, and a stream of it.
struct Place {
  explicit Place(int32_t device) : stream(std::make_shared<Stream>(device)) {}

  const std::shared_ptr<Stream> stream;
  const std::unique_ptr<Allocation> memory = make_memory(stream)->allocate(kBytes);
  PinnedMemory pinned{kBytes};
};

// Bytes that begin with `first`, from one device to the other and back to the host, by streams of both.
void expect_copies(Place& to, Place& from, int first) {
  for (size_t i = 0; i < kBytes; ++i) {
    from.pinned.data()[i] = static_cast<std::byte>(first + static_cast<int>(i % 97));
  }
  from.stream->copy(from.memory->data, from.pinned.data(), kBytes);
  from.stream->wait();
  to.stream->copy_from_device(from.stream->device(), to.memory->data, from.memory->data, kBytes);
  to.stream->copy(to.pinned.data(), to.memory->data, kBytes);
  to.stream->wait();
  EXPECT_TRUE(std::equal(to.pinned.data(), to.pinned.data() + kBytes, from.pinned.data()));
}

// In a process of its own, with three devices.
void with_devices(const std::function<void(const Peers&)>& body) {
  if (!is_on_cpu()) GTEST_SKIP() << "only CUDA on the CPU has several devices here";
  expect_in_child("SHARDREC_SIMT_DEVICES", "3", [&] { body(Peers()); });
}

TEST(PeerAccess, IsAskedForOnceForEachPair) {
  with_devices([](const Peers& peers) {
    Place zero(0);
    Place one(1);
    EXPECT_EQ(peers.questions(), 0);
    for (const int first : {1, 2, 3}) expect_copies(zero, one, first);
    EXPECT_EQ(peers.questions(), 1);
    EXPECT_EQ(peers.pools_reached(0), 0b010U);
    EXPECT_EQ(peers.enabled(0), 0b010U);
    EXPECT_EQ(peers.pools_reached(1), 0U) << "nobody has copied from device 0";
    Place other_stream(0);
    expect_copies(other_stream, one, 4);
    EXPECT_EQ(peers.questions(), 1);
    expect_copies(one, zero, 5);
    Place two(2);
    expect_copies(one, two, 6);
    EXPECT_EQ(peers.questions(), 3);
    EXPECT_EQ(peers.pools_reached(1), 0b101U);
    EXPECT_EQ(peers.enabled(1), 0b101U);
    EXPECT_EQ(peers.pools_reached(2), 0U);
  });
}

TEST(PeerAccess, IsAskedForByOneOfTheThreadsThatCopyFirst) {
  with_devices([](const Peers& peers) {
    constexpr int kThreads = 8;
    std::vector<std::unique_ptr<Place>> places;
    for (int t = 0; t < 2 * kThreads; ++t) places.push_back(std::make_unique<Place>(t % 2));
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        const auto i = static_cast<size_t>(2 * t);
        expect_copies(*places[i], *places[i + 1], t);
        EXPECT_EQ(peers.pools_reached(0), 0b010U) << "whoever asked, it was done before the copy";
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(peers.questions(), 1);
  });
}

TEST(PeerAccess, CopiesAreRightWhereDevicesDoNotReachEachOther) {
  with_devices([](const Peers& peers) {
    constexpr std::array kWays{1, 2};  // it is not possible; what asks for it fails
    std::array<std::unique_ptr<Place>, 3> places;
    for (int32_t device = 0; device < 3; ++device) {
      places[static_cast<size_t>(device)] = std::make_unique<Place>(device);
    }
    for (const int way : kWays) {
      peers.set_access(way);
      const auto peer = static_cast<size_t>(way);
      for (const int first : {1, 2}) expect_copies(*places[0], *places[peer], first);
      EXPECT_EQ(peers.questions(), way) << "what was refused is not asked for again";
      EXPECT_EQ(peers.last_error(), 0) << "the caller's next cudaGetLastError() would find it";
      EXPECT_EQ(peers.pools_reached(0), 0U);
    }
  });
}

}  // namespace
}  // namespace shardrec::test
