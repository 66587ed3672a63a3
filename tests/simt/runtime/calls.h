// What all calls of the runtime begin and end with: the state of the calling thread, and errors.
//
// A call reads
//   return call([&]() -> cudaError_t { ... return cudaSuccess; });
// which leaves it out where CUDA would: without a device, on a broken one, in a host function.
#pragma once

#include <cstdio>
#include <exception>
#include <new>

#include "devices.h"
#include "handles.h"
#include "simt/runtime.h"

namespace simt {

int current_device() noexcept;
void set_current_device(int device) noexcept;
// A device is used: CUDA would make a context on it now, if there is none.
void note_context(int device) noexcept;

// Keeps the error for cudaGetLastError(), and returns it.
cudaError_t keep_error(cudaError_t error) noexcept;

// NoDevice, InsufficientDriver; NotPermitted in a host function, which may not call the runtime.
cudaError_t availability() noexcept;

// Of calls of the runtime that use a device.
void count_call() noexcept;

// Of calls that ask what a device is, and do not use it.
template <class Body>
cudaError_t ask(Body body) noexcept {
  cudaError_t error = availability();
  if (error == cudaSuccess) error = error_of_device(current_device());
  if (error == cudaSuccess) {
    try {
      error = body();
    } catch (const std::bad_alloc&) {
      error = cudaErrorMemoryAllocation;
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "simt: %s\n", failure.what());
      error = cudaErrorUnknown;
    }
  }
  return keep_error(error);
}

template <class Body>
cudaError_t call(Body body) noexcept {
  count_call();
  if (availability() == cudaSuccess) note_context(current_device());
  return ask(body);
}

// The stream of the handle, or why there is none.
cudaError_t stream_of(cudaStream_t handle, Stream*& stream) noexcept;
// As stream_of(), for what no capture can have.
cudaError_t free_stream_of(cudaStream_t handle, Stream*& stream) noexcept;
// As free_stream_of(); 0 and 1 are the legacy default stream of the current device, 2 is that of the calling thread. For
// events.
cudaError_t stream_or_default(cudaStream_t handle, Stream*& stream);

}  // namespace simt
