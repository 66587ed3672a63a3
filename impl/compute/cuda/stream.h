// What the handles of cuda_plugin.h are, and the device that a call works on.
#pragma once

#include <cuda_runtime.h>

#include "compute/cuda/cuda_plugin.h"

struct shardrec_cuda_stream {
  int device = 0;
  cudaStream_t stream = nullptr;
};

struct shardrec_cuda_event {
  int device = 0;
  cudaEvent_t event = nullptr;
};

namespace shardrec::compute::cuda {

// Makes a device the calling thread's current one for as long as this lives.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    error_ = cudaGetDevice(&before_);
    if (error_ != cudaSuccess || before_ == device) return;
    error_ = cudaSetDevice(device);
    changed_ = error_ == cudaSuccess;
  }
  ~CurrentDevice() {
    if (changed_) cudaSetDevice(before_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

  cudaError_t error() const { return error_; }

 private:
  int before_ = 0;
  bool changed_ = false;
  cudaError_t error_ = cudaSuccess;
};

}  // namespace shardrec::compute::cuda
