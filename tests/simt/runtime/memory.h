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

#include "shared_files.h"

namespace simt {

enum class MemoryKind { kPageable, kPinned, kDevice, kDeviceOfStream, kOpened };

// What an address belongs to: the host's pageable memory if it is none of ours.
struct MemoryRange {
  MemoryKind kind = MemoryKind::kPageable;
  int device = 0;
  size_t bytes_left = SIZE_MAX;  // from the address to the end of the block
  bool begins_block = false;

  bool is_device() const noexcept {
    return kind == MemoryKind::kDevice || kind == MemoryKind::kDeviceOfStream ||
           kind == MemoryKind::kOpened;
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

// Memory between processes (cudaIpc...). Blocks of kDevice lie in files, and may be opened by others; the bytes around
// them too, so that each process looks whether they were touched.
// False: the address is no beginning of such a block.
bool export_device_memory(const void* block, FileHandle& handle) noexcept;
// A block of another process, as one of a device of this one; the same address where it is opened again. Null: it is
// gone, or there is no room.
void* open_device_memory(int device, const FileHandle& handle) noexcept;
// As often as it was opened. False: the address is no beginning of such a block. The program ends where an operation
// that was enqueued still uses it.
bool close_device_memory(void* block) noexcept;

// While one of these lives, an operation uses the memory, should it be of another process.
class UseOfOpened {
 public:
  explicit UseOfOpened(const void* address) noexcept : address_(address) { add(1); }
  UseOfOpened(const UseOfOpened& other) noexcept : UseOfOpened(other.address_) {}
  UseOfOpened& operator=(const UseOfOpened&) = delete;
  ~UseOfOpened() { add(-1); }

 private:
  void add(int uses) const noexcept;
  const void* address_;
};

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
