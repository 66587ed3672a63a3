// What libraries with kernels of their own call (simt/control.h).
#include "calls.h"
#include "simt/control.h"

namespace simt {
namespace {

int enqueue_function(int64_t handle, Access access, void (*function)(void*), void* argument) {
  return call([&]() -> cudaError_t {
    Stream* stream = nullptr;
    const cudaError_t error = free_stream_of(reinterpret_cast<cudaStream_t>(handle), stream);
    if (error != cudaSuccess) return error;
    if (function == nullptr) return cudaErrorInvalidValue;
    stream->enqueue(access, [=] { function(argument); });
    return cudaSuccess;
  });
}

}  // namespace
}  // namespace simt

int simt_enqueue_device_function(int64_t stream, void (*function)(void*), void* argument) {
  return simt::enqueue_function(stream, simt::Access::kDevice, function, argument);
}

int simt_enqueue_wait(int64_t stream, void (*function)(void*), void* argument) {
  return simt::enqueue_function(stream, simt::Access::kWait, function, argument);
}

int simt_current_device(void) {
  return simt::availability() == cudaSuccess ? simt::current_device() : -1;
}

int simt_device_of_stream(int64_t stream) {
  const simt::Stream* found = simt::find_stream(reinterpret_cast<cudaStream_t>(stream));
  return found == nullptr ? -1 : found->device();
}
