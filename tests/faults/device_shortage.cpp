#include "faults/device_shortage.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "compute/cuda/host/stream.h"
#include "shardrec/native.h"

namespace shardrec::test {
namespace {

constexpr int64_t kNone = 0;  // no allocation fails

// Of the calling thread: the allocations up to the one that fails, that one among them.
thread_local int64_t left = kNone;
thread_local bool lasts = false;
thread_local bool has_failed = false;

bool fails_now() {
  if (left == kNone || --left > 0) return false;
  has_failed = true;
  if (lasts) left = 1;
  return true;
}

// A stream of the allocator's own, which the library's are joined to.
struct Pool {
  explicit Pool(int32_t device) : stream(device), event(device) {}
  compute::cuda::host::Stream stream;
  compute::cuda::host::Event event;
};

struct Pools {
  std::mutex mutex;
  std::map<int32_t, Pool> by_device;
  int64_t live_blocks = 0;

  Pool& of(int32_t device) { return by_device.try_emplace(device, device).first->second; }
};
std::unique_ptr<Pools> pools;  // while there is a DeviceAllocator

void* allocate(void* /*context*/, int32_t device, int64_t bytes, int64_t stream) {
  if (fails_now()) return nullptr;
  const NoShortage pause;
  const std::lock_guard lock(pools->mutex);
  Pool& pool = pools->of(device);
  void* memory = nullptr;
  compute::cuda::host::require(compute::cuda::host::table().allocate(
                                   pool.stream.handle(), static_cast<uint64_t>(bytes), &memory),
                               "allocate for the program");
  pool.event.record(pool.stream);
  pool.event.hold_up_caller(stream);
  ++pools->live_blocks;
  return memory;
}

void release(void* /*context*/, int32_t device, void* memory, int64_t /*bytes*/, int64_t stream) {
  const NoShortage pause;
  const std::lock_guard lock(pools->mutex);
  Pool& pool = pools->of(device);
  pool.event.record_caller(stream);
  pool.stream.follow(pool.event);
  EXPECT_EQ(compute::cuda::host::table().release(pool.stream.handle(), memory), SHARDREC_CUDA_OK);
  --pools->live_blocks;
}

}  // namespace

bool tables_are_on_devices() {
  const char* const backend = std::getenv("SHARDREC_TEST_BACKEND");
  return backend != nullptr && std::string_view(backend) == "cuda";
}

DeviceAllocator::DeviceAllocator() {
  pools = std::make_unique<Pools>();
  EXPECT_EQ(shardrec_device_set_allocator(allocate, release, nullptr), SHARDREC_OK);
}

DeviceAllocator::~DeviceAllocator() {
  EXPECT_EQ(shardrec_device_set_allocator(nullptr, nullptr, nullptr), SHARDREC_OK);
  EXPECT_EQ(pools->live_blocks, 0) << "memory of devices was not given back";
  pools.reset();
}

void fail_device_allocation(int64_t k, Shortage shortage) {
  left = k;
  lasts = shortage == Shortage::kLasting;
  has_failed = false;
}

bool end_device_shortage() {
  left = kNone;
  return has_failed;
}

bool device_allocation_has_failed() { return has_failed; }

NoDeviceShortage::NoDeviceShortage() : left_(left) { left = kNone; }
NoDeviceShortage::~NoDeviceShortage() { left = left_; }

}  // namespace shardrec::test
