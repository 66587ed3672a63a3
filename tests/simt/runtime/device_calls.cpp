// Calls about devices and kernels.
#include <atomic>
#include <cstdio>
#include <map>
#include <set>

#include "calls.h"
#include "memory.h"
#include "quiet.h"
#include "simt.h"
#include "simt/control.h"

namespace simt {
namespace {

constexpr int kVersion = 13000;
constexpr unsigned kMostBlocks = 0x7FFFFFFF;

std::atomic<int64_t> launches{0};

bool is_device(int device) { return device >= 0 && device < device_count(); }

struct FunctionSettings {
  int dynamic_shared_bytes = kMostSharedBytesUnasked;
  std::set<int> loaded_on;  // devices
};

struct Functions {
  QuietMutex mutex;
  std::map<const void*, FunctionSettings> settings;
  int64_t loaded_by_launches = 0;
};

Functions& functions() {
  static Functions& all = *new Functions;
  return all;
}

// Of shared memory per block; loads the function onto the current device, if it is not there.
int most_shared_bytes(const void* function, bool launched) {
  const QuietLock lock(functions().mutex);
  FunctionSettings& settings = functions().settings[function];
  if (settings.loaded_on.insert(current_device()).second && launched) {
    ++functions().loaded_by_launches;
  }
  return settings.dynamic_shared_bytes;
}

// A kernel whose copies are kernels of their own.
class CopiedKernel {
 public:
  explicit CopiedKernel(std::unique_ptr<const Kernel> kernel) : kernel_(std::move(kernel)) {}
  CopiedKernel(const CopiedKernel& other) : kernel_(other.kernel_->copy()) {}
  CopiedKernel(CopiedKernel&&) = default;
  CopiedKernel& operator=(const CopiedKernel&) = delete;
  CopiedKernel& operator=(CopiedKernel&&) = delete;
  ~CopiedKernel() = default;
  const Kernel& operator*() const { return *kernel_; }

 private:
  std::unique_ptr<const Kernel> kernel_;
};

// As cudaLaunchKernel() finds them.
cudaError_t check_shape(const Shape& shape, const void* function) {
  if (shape.grid.y != 1 || shape.grid.z != 1 || shape.block.y != 1 || shape.block.z != 1) {
    std::fputs("simt: grids and blocks have one dimension\n", stderr);
    return cudaErrorInvalidConfiguration;
  }
  if (shape.grid.x == 0 || shape.grid.x > kMostBlocks || shape.block.x == 0 ||
      shape.block.x > kMostThreads) {
    return cudaErrorInvalidConfiguration;
  }
  const auto most = static_cast<size_t>(most_shared_bytes(function, true));
  return shape.shared_bytes > most ? cudaErrorInvalidValue : cudaSuccess;
}

}  // namespace

cudaError_t enqueue(std::unique_ptr<const Kernel> kernel, const Shape& shape, cudaStream_t handle) {
  return call([&]() -> cudaError_t {
    if (kernel == nullptr) return cudaErrorMemoryAllocation;
    if (kernel->function() == nullptr) return cudaErrorInvalidDeviceFunction;
    if (const cudaError_t error = check_shape(shape, kernel->function()); error != cudaSuccess) {
      return error;
    }
    Stream* stream = nullptr;
    if (const cudaError_t error = stream_of(handle, stream); error != cudaSuccess) return error;
    if (stream->device() != current_device()) return cudaErrorInvalidResourceHandle;
    stream->enqueue(
        Access::kDevice,
        [kernel = CopiedKernel(std::move(kernel)), shape, schedule = schedule()] {
          Stream::runner().run(*kernel, shape, schedule);
        },
        &launches);
    return cudaSuccess;
  });
}

}  // namespace simt

using simt::call;

int64_t simt_launches(void) { return simt::launches.load(); }

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return simt::keep_error(cudaErrorInvalidValue);
  *version = simt::kVersion;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  if (version == nullptr) return simt::keep_error(cudaErrorInvalidValue);
  *version = simt::device_count() < 0 ? 0 : simt::kVersion;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  if (count == nullptr) return simt::keep_error(cudaErrorInvalidValue);
  if (const cudaError_t error = simt::availability(); error != cudaSuccess) {
    return simt::keep_error(error);
  }
  *count = simt::device_count();
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  if (const cudaError_t error = simt::availability(); error != cudaSuccess) {
    return simt::keep_error(error);
  }
  if (device == nullptr) return simt::keep_error(cudaErrorInvalidValue);
  *device = simt::current_device();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  cudaError_t error = simt::availability();
  if (error == cudaSuccess && !simt::is_device(device)) error = cudaErrorInvalidDevice;
  if (error == cudaSuccess) {
    simt::set_current_device(device);
    simt::note_context(device);
    error = simt::error_of_device(device);
  }
  return simt::keep_error(error);
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return simt::ask([&]() -> cudaError_t {
    if (value == nullptr) return cudaErrorInvalidValue;
    if (!simt::is_device(device)) return cudaErrorInvalidDevice;
    switch (attribute) {
      case cudaDevAttrMaxThreadsPerBlock:
        *value = static_cast<int>(simt::kMostThreads);
        return cudaSuccess;
      case cudaDevAttrMaxGridDimX:
        *value = static_cast<int>(simt::kMostBlocks);
        return cudaSuccess;
      case cudaDevAttrMaxSharedMemoryPerBlock:
        *value = simt::kMostSharedBytesUnasked;
        return cudaSuccess;
      case cudaDevAttrWarpSize:
        *value = warpSize;
        return cudaSuccess;
      case cudaDevAttrMultiProcessorCount:
        *value = simt::kMultiprocessors;
        return cudaSuccess;
      case cudaDevAttrL2CacheSize:
        *value = simt::kCacheBytes;
        return cudaSuccess;
      case cudaDevAttrMaxThreadsPerMultiProcessor:
        *value = 2048;
        return cudaSuccess;
      case cudaDevAttrComputeCapabilityMajor:
        *value = simt::kCapabilityMajor;
        return cudaSuccess;
      case cudaDevAttrComputeCapabilityMinor:
        *value = simt::kCapabilityMinor;
        return cudaSuccess;
      case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        *value = simt::kMostSharedBytes + 1024;
        return cudaSuccess;
      case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = simt::kMostSharedBytes;
        return cudaSuccess;
      case cudaDevAttrMemoryPoolsSupported:
        *value = 1;
        return cudaSuccess;
    }
    return cudaErrorInvalidValue;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return simt::ask([&]() -> cudaError_t {
    if (properties == nullptr) return cudaErrorInvalidValue;
    if (!simt::is_device(device)) return cudaErrorInvalidDevice;
    *properties = {.name = "CUDA on the CPU",
                   .totalGlobalMem = simt::memory_of_device(),
                   .sharedMemPerBlock = simt::kMostSharedBytesUnasked,
                   .sharedMemPerBlockOptin = simt::kMostSharedBytes,
                   .warpSize = warpSize,
                   .maxThreadsPerBlock = static_cast<int>(simt::kMostThreads),
                   .major = simt::kCapabilityMajor,
                   .minor = simt::kCapabilityMinor,
                   .multiProcessorCount = simt::kMultiprocessors,
                   .l2CacheSize = simt::kCacheBytes};
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return simt::ask([&]() -> cudaError_t {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return call([&]() -> cudaError_t {
    if (free_bytes == nullptr || total_bytes == nullptr) return cudaErrorInvalidValue;
    *total_bytes = simt::memory_of_device();
    *free_bytes = *total_bytes - simt::used_device_memory(simt::current_device());
    return cudaSuccess;
  });
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  return call([&]() -> cudaError_t {
    if (function == nullptr) return cudaErrorInvalidDeviceFunction;
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) {
      return value >= -1 && value <= 100 ? cudaSuccess : cudaErrorInvalidValue;
    }
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
        value > simt::kMostSharedBytes) {
      return cudaErrorInvalidValue;
    }
    const simt::QuietLock lock(simt::functions().mutex);
    simt::functions().settings[function].dynamic_shared_bytes = value;
    return cudaSuccess;
  });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  return call([&]() -> cudaError_t {
    if (attributes == nullptr) return cudaErrorInvalidValue;
    if (function == nullptr) return cudaErrorInvalidDeviceFunction;
    *attributes = {.sharedSizeBytes = 0,
                   .localSizeBytes = 0,
                   .maxThreadsPerBlock = static_cast<int>(simt::kMostThreads),
                   .numRegs = 32,
                   .maxDynamicSharedSizeBytes = simt::most_shared_bytes(function, false)};
    return cudaSuccess;
  });
}

int64_t simt_kernels_loaded_by_launches(void) {
  const simt::QuietLock lock(simt::functions().mutex);
  return simt::functions().loaded_by_launches;
}
