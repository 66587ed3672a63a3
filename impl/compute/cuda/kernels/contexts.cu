#include <cuda.h>

#include <array>
#include <atomic>

#include "compute/cuda/kernels/contexts.h"

namespace shardrec::compute::cuda {
namespace {

std::array<std::atomic<CUcontext>, kMostDevices> contexts{};

// The driver's functions, by way of the runtime: the plug-in is not linked to it.
struct Driver {
  CUresult (*init)(unsigned) = nullptr;
  CUresult (*get_device)(CUdevice*, int) = nullptr;
  CUresult (*retain)(CUcontext*, CUdevice) = nullptr;
  CUresult (*push)(CUcontext) = nullptr;
  CUresult (*pop)(CUcontext*) = nullptr;
  cudaError_t error = cudaSuccess;

  Driver() {
    find("cuInit", init);
    find("cuDeviceGet", get_device);
    find("cuDevicePrimaryCtxRetain", retain);
    find("cuCtxPushCurrent", push);
    find("cuCtxPopCurrent", pop);
    if (error == cudaSuccess) error = static_cast<cudaError_t>(init(0));
  }

  template <class Function>
  void find(const char* name, Function& function) {
    if (error != cudaSuccess) return;
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    constexpr unsigned kVersion = 12000;  // of the driver's functions
    error = cudaGetDriverEntryPointByVersion(name, &found, kVersion, cudaEnableDefault, &result);
#else
    error = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#endif
    if (error == cudaSuccess && result != cudaDriverEntryPointSuccess) {
      error = cudaErrorInsufficientDriver;
    }
    function = reinterpret_cast<Function>(found);
  }
};

const Driver& driver() {
  static const Driver found;
  return found;
}

// Errors of the driver have the numbers of the runtime's.
cudaError_t find_context(int device, CUcontext& context) {
  if (device < 0 || device >= kMostDevices) return cudaErrorInvalidDevice;
  std::atomic<CUcontext>& kept = contexts[static_cast<size_t>(device)];
  context = kept.load(std::memory_order_acquire);
  if (context != nullptr) return cudaSuccess;
  CUdevice handle = 0;
  CUresult error = driver().get_device(&handle, device);
  if (error == CUDA_SUCCESS) error = driver().retain(&context, handle);
  if (error == CUDA_SUCCESS) kept.store(context, std::memory_order_release);
  return static_cast<cudaError_t>(error);
}

}  // namespace

cudaError_t enter_device(int device) {
  if (driver().error != cudaSuccess) return driver().error;
  CUcontext context = nullptr;
  const cudaError_t error = find_context(device, context);
  return error != cudaSuccess ? error : static_cast<cudaError_t>(driver().push(context));
}

void leave_device() {
  CUcontext unused = nullptr;
  driver().pop(&unused);
}

bool is_entered(int device) {
  return device >= 0 && device < kMostDevices &&
         contexts[static_cast<size_t>(device)].load(std::memory_order_acquire) != nullptr;
}

int any_entered_device() {
  for (int device = 0; device < kMostDevices; ++device) {
    if (is_entered(device)) return device;
  }
  return 0;
}

}  // namespace shardrec::compute::cuda
