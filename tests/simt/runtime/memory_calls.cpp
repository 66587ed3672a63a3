// Calls that allocate, copy and fill.
#include <sched.h>

#include <atomic>
#include <cstring>
#include <new>
#include <vector>

#include "calls.h"
#include "memory.h"
#include "simt/control.h"

namespace simt {
namespace {

std::atomic<int64_t> copies{0};

// Bytes of pageable memory on their way to a device.
class Staging {
 public:
  Staging(const void* from, size_t bytes) : bytes_(new unsigned char[bytes]) {
    std::memcpy(bytes_.get(), from, bytes);
  }
  const void* data() const { return bytes_.get(); }

 private:
  std::unique_ptr<unsigned char[]> bytes_;
};

// Whether a copy of the kind may go from one to the other.
cudaError_t check_kind(cudaMemcpyKind kind, const MemoryRange& to, const MemoryRange& from) {
  const auto goes = [&](bool from_device, bool to_device) {
    return from.is_device() == from_device && to.is_device() == to_device ? cudaSuccess
                                                                          : cudaErrorInvalidValue;
  };
  switch (kind) {
    case cudaMemcpyHostToHost:
      return goes(false, false);
    case cudaMemcpyHostToDevice:
      return goes(false, true);
    case cudaMemcpyDeviceToHost:
      return goes(true, false);
    case cudaMemcpyDeviceToDevice:
      return goes(true, true);
    case cudaMemcpyDefault:
      return cudaSuccess;
  }
  return cudaErrorInvalidMemcpyDirection;
}

// Null address, and MemoryAllocation, without room.
cudaError_t reserve(void** address, size_t bytes, MemoryKind kind) {
  *address = nullptr;
  if (next_allocation_fails()) return cudaErrorMemoryAllocation;
  *address = reserve_device_memory(current_device(), bytes, kind);
  return *address == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t free_now(void* address) {
  const MemoryRange block = find_memory(address);
  if (!block.is_device() || !block.begins_block || block.kind == MemoryKind::kOpened) {
    return cudaErrorInvalidValue;
  }
  wait_for_device(block.device);
  retire_device_memory(address);
  const DeviceAccess access;
  discard_device_memory(address);
  return cudaSuccess;
}

// As the last operation so far. CUDA needs no memory of the host to free memory: then it is waited for.
void discard_in_order(void* address, Stream& stream) {
  try {
    stream.enqueue(Access::kMemory, [address] { discard_device_memory(address); });
  } catch (const std::bad_alloc&) {
    while (!stream.is_idle()) sched_yield();
    const DeviceAccess access;
    discard_device_memory(address);
  }
}

cudaError_t free_pinned(void* address) {
  const MemoryRange block = find_memory(address);
  if (block.kind != MemoryKind::kPinned || !block.begins_block) return cudaErrorInvalidValue;
  for (int device = 0; device < device_count(); ++device) wait_for_device(device);
  free_pinned_memory(address);
  return cudaSuccess;
}

cudaError_t copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                 cudaStream_t handle) {
  Stream* stream = nullptr;
  if (const cudaError_t error = stream_of(handle, stream); error != cudaSuccess) return error;
  const MemoryRange target = find_memory(to);
  const MemoryRange source = find_memory(from);
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
    return cudaErrorInvalidMemcpyDirection;
  }
  if (bytes == 0) return cudaSuccess;
  if (to == nullptr || from == nullptr || bytes > target.bytes_left || bytes > source.bytes_left) {
    return cudaErrorInvalidValue;
  }
  if (const cudaError_t error = check_kind(kind, target, source); error != cudaSuccess)
    return error;
  if (stream->is_capturing() && target.kind == MemoryKind::kPageable) {
    stream->invalidate_capture();
    return cudaErrorStreamCaptureUnsupported;
  }
  // Memory of pools, which other devices do not reach unasked, goes by cudaMemcpyPeerAsync().
  for (const MemoryRange& range : {target, source}) {
    if (range.is_device() && range.device != stream->device()) return cudaErrorInvalidValue;
  }
  if (source.kind == MemoryKind::kPageable) {
    stream->enqueue(
        Access::kDevice,
        [to, bytes, staging = Staging(from, bytes)] { std::memcpy(to, staging.data(), bytes); },
        &copies);
  } else if (source.kind == MemoryKind::kOpened || target.kind == MemoryKind::kOpened) {
    stream->enqueue(
        Access::kDevice,
        [to, from, bytes, source_used = UseOfOpened(from), target_used = UseOfOpened(to)] {
          std::memmove(to, from, bytes);
        },
        &copies);
  } else {
    stream->enqueue(Access::kDevice, [to, from, bytes] { std::memmove(to, from, bytes); }, &copies);
  }
  if (target.kind == MemoryKind::kPageable) {
    stream->synchronize();
    return error_of_device(stream->device());
  }
  return cudaSuccess;
}

cudaError_t copy_between_devices(void* to, int to_device, const void* from, int from_device,
                                 size_t bytes, cudaStream_t handle) {
  Stream* stream = nullptr;
  if (const cudaError_t error = stream_of(handle, stream); error != cudaSuccess) return error;
  const auto is_of = [bytes](const MemoryRange& range, int device) {
    return range.is_device() && range.device == device && bytes <= range.bytes_left;
  };
  if (bytes == 0) return cudaSuccess;
  if (!is_of(find_memory(to), to_device) || !is_of(find_memory(from), from_device)) {
    return cudaErrorInvalidValue;
  }
  stream->enqueue(Access::kDevice, [to, from, bytes] { std::memmove(to, from, bytes); }, &copies);
  return cudaSuccess;
}

}  // namespace
}  // namespace simt

using simt::call;

int64_t simt_copies(void) { return simt::copies.load(); }

cudaError_t cudaMalloc(void** address, size_t bytes) {
  return call([&]() -> cudaError_t {
    if (address == nullptr) return cudaErrorInvalidValue;
    if (bytes == 0) {
      *address = nullptr;
      return cudaSuccess;
    }
    if (const cudaError_t error = simt::reserve(address, bytes, simt::MemoryKind::kDevice);
        error != cudaSuccess) {
      return error;
    }
    const simt::DeviceAccess access;
    simt::prepare_device_memory(*address);
    return cudaSuccess;
  });
}

// Also on a broken device: the memory goes, the error stays.
cudaError_t cudaFree(void* address) {
  const cudaError_t available = simt::availability();
  if (available != cudaSuccess) return simt::keep_error(available);
  const cudaError_t freed = address == nullptr ? cudaSuccess : simt::free_now(address);
  return call([&] { return freed; });
}

cudaError_t cudaMallocAsync(void** address, size_t bytes, cudaStream_t handle) {
  return call([&]() -> cudaError_t {
    if (address == nullptr || bytes == 0) return cudaErrorInvalidValue;
    simt::Stream* stream = nullptr;
    if (const cudaError_t error = simt::free_stream_of(handle, stream); error != cudaSuccess) {
      return error;
    }
    if (const cudaError_t error = simt::reserve(address, bytes, simt::MemoryKind::kDeviceOfStream);
        error != cudaSuccess) {
      return error;
    }
    stream->enqueue(simt::Access::kMemory,
                    [block = *address] { simt::prepare_device_memory(block); });
    return cudaSuccess;
  });
}

// As cudaFree().
cudaError_t cudaFreeAsync(void* address, cudaStream_t handle) {
  const cudaError_t available = simt::availability();
  if (available != cudaSuccess) return simt::keep_error(available);
  simt::Stream* stream = nullptr;
  cudaError_t freed = simt::free_stream_of(handle, stream);
  if (freed == cudaSuccess) {
    const simt::MemoryRange block = simt::find_memory(address);
    if (block.kind != simt::MemoryKind::kDeviceOfStream || !block.begins_block) {
      freed = cudaErrorInvalidValue;
    } else {
      simt::retire_device_memory(address);
      simt::discard_in_order(address, *stream);
    }
  }
  return call([&] { return freed; });
}

cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned flags) {
  return call([&]() -> cudaError_t {
    constexpr unsigned kFlags =
        cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
    if (address == nullptr || (flags & ~kFlags) != 0) return cudaErrorInvalidValue;
    *address = nullptr;
    if (bytes == 0) return cudaSuccess;
    if (simt::next_allocation_fails()) return cudaErrorMemoryAllocation;
    *address = simt::allocate_pinned_memory(bytes);
    return *address == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
  });
}

cudaError_t cudaMallocHost(void** address, size_t bytes) {
  return cudaHostAlloc(address, bytes, cudaHostAllocDefault);
}

// As cudaFree().
cudaError_t cudaFreeHost(void* address) {
  const cudaError_t available = simt::availability();
  if (available != cudaSuccess) return simt::keep_error(available);
  const cudaError_t freed = address == nullptr ? cudaSuccess : simt::free_pinned(address);
  return call([&] { return freed; });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  return call([&]() -> cudaError_t {
    if (attributes == nullptr) return cudaErrorInvalidValue;
    const simt::MemoryRange range = simt::find_memory(address);
    void* pointer = const_cast<void*>(address);
    constexpr int kNoDevice = -2;
    if (range.is_device() && range.bytes_left != 0) {
      *attributes = {cudaMemoryTypeDevice, range.device, pointer, nullptr};
    } else if (range.kind == simt::MemoryKind::kPinned) {
      *attributes = {cudaMemoryTypeHost, range.device, pointer, pointer};
    } else {
      *attributes = {cudaMemoryTypeUnregistered, kNoDevice, nullptr, pointer};
    }
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return call([&] { return simt::copy(to, from, bytes, kind, stream); });
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                size_t bytes, cudaStream_t stream) {
  return call(
      [&] { return simt::copy_between_devices(to, to_device, from, from_device, bytes, stream); });
}

cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes, cudaStream_t handle) {
  return call([&]() -> cudaError_t {
    simt::Stream* stream = nullptr;
    if (const cudaError_t error = simt::stream_of(handle, stream); error != cudaSuccess) {
      return error;
    }
    if (bytes == 0) return cudaSuccess;
    const simt::MemoryRange target = simt::find_memory(to);
    if (target.kind == simt::MemoryKind::kPageable || bytes > target.bytes_left) {
      return cudaErrorInvalidValue;
    }
    stream->enqueue(simt::Access::kDevice, [=] { std::memset(to, byte, bytes); }, &simt::copies);
    return cudaSuccess;
  });
}
