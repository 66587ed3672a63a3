// Memory of devices, and pinned memory of the host.
//
// Memory of devices is a range of addresses of its own, which nobody can touch but while an operation of
// some stream runs. Around each block are bytes that nobody may touch at all: for the address sanitizer
// all addresses between blocks are poisoned, without it some bytes are compared. Fresh memory is full of
// garbage; addresses of freed memory are not taken again for a while. To the thread sanitizer, getting
// and freeing memory write to it.
//
// Not covered: while an operation of one stream runs, the host and other streams can touch all memory
// (this takes protection by thread, which few processors have); and kernels can touch the host's
// pageable memory, which some devices cannot.
//
// Thread rule: any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace simt {

enum class MemoryKind { kPageable, kPinned, kDevice, kDeviceOfStream };

// What an address belongs to: the host's pageable memory if it is none of ours.
struct MemoryRange {
  MemoryKind kind = MemoryKind::kPageable;
  int device = 0;
  size_t bytes_left = SIZE_MAX;  // from the address to the end of the block
  bool begins_block = false;

  bool is_device() const noexcept {
    return kind == MemoryKind::kDevice || kind == MemoryKind::kDeviceOfStream;
  }
};

MemoryRange find_memory(const void* address) noexcept;

// Null without room. The block counts from now on, but holds nothing before prepare_device_memory(),
// which the owner calls in the order of its stream.
void* reserve_device_memory(int device, size_t bytes, MemoryKind kind) noexcept;
void prepare_device_memory(void* block) noexcept;
// The block counts no more from now on; its bytes are there until discard_device_memory().
void retire_device_memory(void* block) noexcept;
void discard_device_memory(void* block) noexcept;

// While one of these lives, memory of devices can be touched.
class DeviceAccess {
 public:
  DeviceAccess() noexcept;
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;
};

void* allocate_pinned_memory(size_t bytes) noexcept;  // null without room
void free_pinned_memory(void* block) noexcept;

size_t used_device_memory(int device) noexcept;
int64_t live_memory_blocks() noexcept;

}  // namespace simt
