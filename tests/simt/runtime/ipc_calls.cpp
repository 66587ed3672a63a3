// Calls about memory and events between processes (cudaIpc...).
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "calls.h"
#include "memory.h"
#include "shared_places.h"
#include "simt/control.h"

namespace simt {
namespace {

static_assert(sizeof(FileHandle) <= sizeof(cudaIpcMemHandle_t::reserved));
static_assert(sizeof(FileHandle) <= sizeof(cudaIpcEventHandle_t::reserved));

template <class Handle>
void write_handle(Handle& to, const FileHandle& from) {
  std::memset(to.reserved, 0, sizeof to.reserved);
  std::memcpy(to.reserved, &from, sizeof from);
}

template <class Handle>
FileHandle read_handle(const Handle& from) {
  FileHandle handle;
  std::memcpy(&handle, from.reserved, sizeof handle);
  return handle;
}

// CUDA refuses what the process has made itself.
bool is_own(const FileHandle& handle) {
  if (handle.process != static_cast<uint64_t>(getpid())) return false;
  std::fputs("simt: a handle is opened in the process that it is of\n", stderr);
  return true;
}

cudaError_t export_event(cudaIpcEventHandle_t& handle, cudaEvent_t of) {
  const Event* const event = find_event(of);
  if (event == nullptr || event->places() == nullptr || event->is_of_another_process()) {
    return cudaErrorInvalidResourceHandle;
  }
  write_handle(handle, event->places()->handle());
  return cudaSuccess;
}

}  // namespace
}  // namespace simt

using simt::call;

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* address) {
  return call([&]() -> cudaError_t {
    if (handle == nullptr) return cudaErrorInvalidValue;
    if (!simt::processes_share()) return cudaErrorNotSupported;
    simt::FileHandle file;
    if (!simt::export_device_memory(address, file)) return cudaErrorInvalidValue;
    simt::write_handle(*handle, file);
    return cudaSuccess;
  });
}

cudaError_t cudaIpcOpenMemHandle(void** address, cudaIpcMemHandle_t handle, unsigned flags) {
  return call([&]() -> cudaError_t {
    if (address == nullptr || flags != cudaIpcMemLazyEnablePeerAccess) return cudaErrorInvalidValue;
    if (!simt::processes_share()) return cudaErrorNotSupported;
    const simt::FileHandle file = simt::read_handle(handle);
    if (simt::is_own(file)) return cudaErrorDeviceUninitialized;
    const int device = simt::current_device();
    if (static_cast<int>(file.device) != device && !simt::peers_reach_each_other()) {
      return cudaErrorPeerAccessUnsupported;
    }
    if (simt::next_allocation_fails()) return cudaErrorMemoryAllocation;
    *address = simt::open_device_memory(device, file);
    return *address == nullptr ? cudaErrorMapBufferObjectFailed : cudaSuccess;
  });
}

cudaError_t cudaIpcCloseMemHandle(void* address) {
  return call([&]() -> cudaError_t {
    return simt::close_device_memory(address) ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return call([&]() -> cudaError_t {
    if (handle == nullptr) return cudaErrorInvalidValue;
    if (!simt::processes_share()) return cudaErrorNotSupported;
    return simt::export_event(*handle, event);
  });
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return call([&]() -> cudaError_t {
    if (event == nullptr) return cudaErrorInvalidValue;
    if (!simt::processes_share()) return cudaErrorNotSupported;
    const simt::FileHandle file = simt::read_handle(handle);
    if (simt::is_own(file)) return cudaErrorDeviceUninitialized;
    auto places = simt::SharedPlaces::open(file);
    if (places == nullptr) return cudaErrorMapBufferObjectFailed;
    *event = simt::add_event(
        std::make_unique<simt::Event>(simt::current_device(), false, false, std::move(places)));
    return cudaSuccess;
  });
}
