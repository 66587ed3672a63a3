// The driver's calls about contexts: each device has one, its primary one, whose address stands for it.
#include <cuda.h>

#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "calls.h"
#include "simt/control.h"

struct CUctx_st {};

namespace simt {
namespace {

std::array<CUctx_st, kMostDevices> contexts;
std::atomic<uint64_t> made{0};
// Of the pushed contexts. Not a vector: its destructor would be registered by each thread, which needs memory
// that tests of shortages refuse, and glibc ends the process then.
constexpr size_t kMostPushed = 32;
constinit thread_local std::array<int, kMostPushed> devices_below{};
constinit thread_local size_t pushed = 0;

CUresult init(unsigned flags) { return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

CUresult get_device(CUdevice* device, int number) {
  if (number < 0 || number >= device_count()) return CUDA_ERROR_INVALID_DEVICE;
  *device = number;
  return CUDA_SUCCESS;
}

CUresult retain(CUcontext* context, CUdevice device) {
  note_context(device);
  *context = &contexts[static_cast<size_t>(device)];
  return CUDA_SUCCESS;
}

CUresult push(CUcontext context) {
  if (context < contexts.data() || context >= contexts.data() + kMostDevices) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (pushed == kMostPushed) return CUDA_ERROR_INVALID_VALUE;
  devices_below[pushed++] = current_device();
  set_current_device(static_cast<int>(context - contexts.data()));
  return CUDA_SUCCESS;
}

CUresult pop(CUcontext* context) {
  if (pushed == 0) return CUDA_ERROR_INVALID_CONTEXT;
  *context = &contexts[static_cast<size_t>(current_device())];
  set_current_device(devices_below[--pushed]);
  return CUDA_SUCCESS;
}

}  // namespace

void note_context(int device) noexcept {
  if (device >= 0 && device < kMostDevices) made.fetch_or(uint64_t{1} << device);
}

}  // namespace simt

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                             uint64_t flags,
                                             cudaDriverEntryPointQueryResult* result) {
  if (const cudaError_t error = simt::availability(); error != cudaSuccess) {
    return simt::keep_error(error);
  }
  if (name == nullptr || function == nullptr || result == nullptr || version == 0 ||
      flags != cudaEnableDefault) {
    return simt::keep_error(cudaErrorInvalidValue);
  }
  const std::array<std::pair<const char*, void*>, 5> functions{{
      {"cuInit", reinterpret_cast<void*>(simt::init)},
      {"cuDeviceGet", reinterpret_cast<void*>(simt::get_device)},
      {"cuDevicePrimaryCtxRetain", reinterpret_cast<void*>(simt::retain)},
      {"cuCtxPushCurrent", reinterpret_cast<void*>(simt::push)},
      {"cuCtxPopCurrent", reinterpret_cast<void*>(simt::pop)},
  }};
  *function = nullptr;
  *result = cudaDriverEntryPointSymbolNotFound;
  for (const auto& [known, address] : functions) {
    if (std::strcmp(known, name) != 0) continue;
    *function = address;
    *result = cudaDriverEntryPointSuccess;
  }
  return cudaSuccess;
}

uint64_t simt_devices_with_contexts(void) { return simt::made.load(); }
