// What the handles of cuda_plugin.h are, and the device that a call works on.
#pragma once

#include <cuda_runtime.h>

#include "compute/cuda/jobs/cuda_plugin.h"
#include "compute/cuda/kernels/commands.h"
#include "compute/cuda/kernels/contexts.h"

struct shardrec_cuda_stream {
  shardrec_cuda_stream(int device_number, cudaStream_t stream)
      : device(device_number), commands(stream) {}

  const int device;
  // Of operations. Whoever does something else with the stream submits them before.
  shardrec::compute::cuda::CommandList commands;
};

struct shardrec_cuda_event {
  int device = 0;
  cudaEvent_t event = nullptr;
};

namespace shardrec::compute::cuda {

// Makes a device the calling thread's current one for as long as this lives.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) : error_(enter_device(device)) {}
  ~CurrentDevice() {
    if (error_ == cudaSuccess) leave_device();
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

  cudaError_t error() const { return error_; }

 private:
  const cudaError_t error_;
};

// The same for the device of a stream, whose commands so far are submitted.
class SubmittedStream {
 public:
  explicit SubmittedStream(shardrec_cuda_stream& stream)
      : device_(stream.device),
        error_(device_.error() == cudaSuccess ? stream.commands.submit() : device_.error()) {}

  cudaError_t error() const { return error_; }

 private:
  const CurrentDevice device_;
  const cudaError_t error_;
};

}  // namespace shardrec::compute::cuda
