// Makes allocations of memory of devices by one thread fail: the program's allocator
// (shardrec_device_set_allocator) that hands CUDA's memory on.
#pragma once

#include <cstdint>

#include "faults/failing_allocator.h"

namespace shardrec::test {

// As SHARDREC_TEST_BACKEND says.
bool tables_are_on_devices();

// The process's allocator while it lives.
class DeviceAllocator {
 public:
  DeviceAllocator();
  ~DeviceAllocator();  // expects that everything was given back
  DeviceAllocator(const DeviceAllocator&) = delete;
  DeviceAllocator& operator=(const DeviceAllocator&) = delete;
};

// As fail_allocation() and its companions, for memory of devices.
void fail_device_allocation(int64_t k, Shortage shortage);
bool end_device_shortage();
bool device_allocation_has_failed();

// Within its scope allocations of this thread neither fail nor count.
class NoDeviceShortage {
 public:
  NoDeviceShortage();
  ~NoDeviceShortage();
  NoDeviceShortage(const NoDeviceShortage&) = delete;
  NoDeviceShortage& operator=(const NoDeviceShortage&) = delete;

 private:
  int64_t left_;
};

}  // namespace shardrec::test
