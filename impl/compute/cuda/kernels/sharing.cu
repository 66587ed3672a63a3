// The table by which processes share memory and events (jobs/sharing.h).
#include <cuda_runtime.h>

#include <cstring>
#include <new>

#include "compute/cuda/jobs/sharing.h"
#include "compute/cuda/kernels/calls.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {
namespace {

template <class Handle>
void write_handle(const Handle& from, shardrec_cuda_handle* to) {
  static_assert(sizeof(Handle) == sizeof *to);
  std::memcpy(to, &from, sizeof from);
}

template <class Handle>
Handle read_handle(const shardrec_cuda_handle* from) {
  Handle handle;
  static_assert(sizeof(Handle) == sizeof *from);
  std::memcpy(&handle, from, sizeof handle);
  return handle;
}

// A refusal is an answer: the caller has another way then, and it is no failure of the next call.
shardrec_cuda_error answered(cudaError_t error) {
  if (error != cudaSuccess) cudaGetLastError();
  return error;
}

shardrec_cuda_error allocate(int32_t device, uint64_t bytes, void** out,
                             shardrec_cuda_handle* handle) {
  *out = nullptr;
  const CurrentDevice current(device);
  if (current.error() != cudaSuccess) return current.error();
  void* memory = nullptr;
  const cudaError_t allocated = called(cudaMalloc(&memory, bytes));
  if (allocated != cudaSuccess) return answered(allocated);
  cudaIpcMemHandle_t made{};
  const cudaError_t exported = called(cudaIpcGetMemHandle(&made, memory));
  if (exported != cudaSuccess) {
    called(cudaFree(memory));
    return answered(exported);
  }
  write_handle(made, handle);
  *out = memory;
  return cudaSuccess;
}

shardrec_cuda_error release(int32_t device, void* memory) {
  const CurrentDevice current(device);
  if (current.error() != cudaSuccess) return current.error();
  return called(cudaFree(memory));
}

shardrec_cuda_error open(int32_t device, const shardrec_cuda_handle* handle, void** out) {
  *out = nullptr;
  const CurrentDevice current(device);
  if (current.error() != cudaSuccess) return current.error();
  return answered(called(cudaIpcOpenMemHandle(out, read_handle<cudaIpcMemHandle_t>(handle),
                                              cudaIpcMemLazyEnablePeerAccess)));
}

shardrec_cuda_error close(int32_t device, void* memory) {
  const CurrentDevice current(device);
  if (current.error() != cudaSuccess) return current.error();
  return called(cudaIpcCloseMemHandle(memory));
}

// Null event, and MemoryAllocation, without room for its handle.
shardrec_cuda_error keep_event(int32_t device, cudaEvent_t event, shardrec_cuda_event** out) {
  *out = new (std::nothrow) shardrec_cuda_event{device, event};
  if (*out != nullptr) return cudaSuccess;
  called(cudaEventDestroy(event));
  return cudaErrorMemoryAllocation;
}

shardrec_cuda_error create_event(int32_t device, shardrec_cuda_event** out,
                                 shardrec_cuda_handle* handle) {
  *out = nullptr;
  const CurrentDevice current(device);
  if (current.error() != cudaSuccess) return current.error();
  cudaEvent_t event = nullptr;
  constexpr unsigned kFlags =
      cudaEventDisableTiming | cudaEventBlockingSync | cudaEventInterprocess;
  const cudaError_t made = called(cudaEventCreateWithFlags(&event, kFlags));
  if (made != cudaSuccess) return answered(made);
  cudaIpcEventHandle_t exported{};
  const cudaError_t error = called(cudaIpcGetEventHandle(&exported, event));
  if (error != cudaSuccess) {
    called(cudaEventDestroy(event));
    return answered(error);
  }
  write_handle(exported, handle);
  return keep_event(device, event, out);
}

shardrec_cuda_error open_event(int32_t device, const shardrec_cuda_handle* handle,
                               shardrec_cuda_event** out) {
  *out = nullptr;
  const CurrentDevice current(device);
  if (current.error() != cudaSuccess) return current.error();
  cudaEvent_t event = nullptr;
  const cudaError_t error =
      called(cudaIpcOpenEventHandle(&event, read_handle<cudaIpcEventHandle_t>(handle)));
  if (error != cudaSuccess) return answered(error);
  return keep_event(device, event, out);
}

}  // namespace
}  // namespace shardrec::compute::cuda

extern "C" __attribute__((visibility("default"))) int32_t
shardrec_cuda_sharing_plugin(shardrec_cuda_sharing* table) {
  namespace cuda = shardrec::compute::cuda;
  const bool same = table->size == sizeof *table && table->abi == SHARDREC_CUDA_ABI;
  table->size = sizeof *table;
  table->abi = SHARDREC_CUDA_ABI;
  if (!same) return SHARDREC_CUDA_ABI_MISMATCH;
  table->allocate = cuda::allocate;
  table->release = cuda::release;
  table->open = cuda::open;
  table->close = cuda::close;
  table->create_event = cuda::create_event;
  table->open_event = cuda::open_event;
  return SHARDREC_CUDA_FILLED;
}
