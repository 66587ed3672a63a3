#include "calls.h"

#include <atomic>

#include "simt/control.h"

namespace simt {
namespace {

std::atomic<int64_t> calls{0};
thread_local int device_of_thread = 0;
thread_local cudaError_t last_error = cudaSuccess;

bool is_default_stream(cudaStream_t handle) {
  return reinterpret_cast<uintptr_t>(handle) <= 2;  // null, cudaStreamLegacy, cudaStreamPerThread
}

}  // namespace

void count_call() noexcept { calls.fetch_add(1); }

int current_device() noexcept { return device_of_thread; }
void set_current_device(int device) noexcept { device_of_thread = device; }

cudaError_t keep_error(cudaError_t error) noexcept {
  if (error != cudaSuccess) last_error = error;
  return error;
}

cudaError_t availability() noexcept {
  if (Stream::is_thread_of_stream()) return cudaErrorNotPermitted;
  if (device_count() < 0) return cudaErrorInsufficientDriver;
  if (device_count() == 0) return cudaErrorNoDevice;
  return cudaSuccess;
}

cudaError_t stream_of(cudaStream_t handle, Stream*& stream) noexcept {
  if (is_default_stream(handle)) {
    std::fputs("simt: a default stream was named, which nothing here may use: create a stream\n",
               stderr);
    return cudaErrorNotSupported;
  }
  stream = find_stream(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  return stream->is_capture_invalid() ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
}

cudaError_t free_stream_of(cudaStream_t handle, Stream*& stream) noexcept {
  const cudaError_t error = stream_of(handle, stream);
  if (error != cudaSuccess) return error;
  if (!stream->is_capturing()) return cudaSuccess;
  stream->invalidate_capture();
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t stream_or_default(cudaStream_t handle, Stream*& stream) {
  if (!is_default_stream(handle)) return free_stream_of(handle, stream);
  constexpr uintptr_t kPerThread = 2;
  stream = default_stream(current_device(), reinterpret_cast<uintptr_t>(handle) == kPerThread);
  return cudaSuccess;
}

}  // namespace simt

int simt_last_error(void) { return cudaPeekAtLastError(); }

int64_t simt_calls(void) { return simt::calls.load(); }

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  simt::last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() {
  if (simt::device_count() < 0) return cudaErrorInsufficientDriver;
  if (simt::device_count() > 0) {
    const cudaError_t broken = simt::error_of_device(simt::current_device());
    if (broken != cudaSuccess) return broken;
  }
  return simt::last_error;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define SIMT_NAME(name, value, text) \
  case name:                         \
    return #name;
    SIMT_ERRORS(SIMT_NAME)
#undef SIMT_NAME
  }
  return "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
#define SIMT_TEXT(name, value, text) \
  case name:                         \
    return text;
    SIMT_ERRORS(SIMT_TEXT)
#undef SIMT_TEXT
  }
  return "unrecognized error code";
}
