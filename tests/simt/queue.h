// A stream, and memory of the current device that lives as long: what most tests begin with.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "device.h"

namespace shardrec::test {

// Fails the test that gets an error.
inline void check(cudaError_t error) {
  EXPECT_EQ(cudaGetErrorName(error), std::string("cudaSuccess"));
}

class Queue {
 public:
  Queue() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Queue() {
    for (void* block : blocks_) check(cudaFreeAsync(block, stream_));
    check(cudaStreamSynchronize(stream_));
    check(cudaStreamDestroy(stream_));
  }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  cudaStream_t stream() const { return stream_; }

  template <class T>
  T* allocate(size_t count) {
    T* block = nullptr;
    check(cudaMallocAsync(&block, count * sizeof(T), stream_));
    blocks_.push_back(block);
    return block;
  }
  template <class T>
  T* upload(const std::vector<T>& values) {
    T* block = allocate<T>(values.size());
    check(cudaMemcpyAsync(block, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice,
                          stream_));
    return block;
  }
  template <class T>
  std::vector<T> download(const T* block, size_t count) {
    std::vector<T> values(count);
    check(
        cudaMemcpyAsync(values.data(), block, count * sizeof(T), cudaMemcpyDeviceToHost, stream_));
    return values;
  }
  template <class... Parameters, class... Arguments>
  void run(void (*kernel)(Parameters...), unsigned grid, unsigned block, size_t shared_bytes,
           const Arguments&... arguments) {
    check(launch(kernel, grid, block, shared_bytes, stream_, arguments...));
  }
  void wait() { check(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_{};
  std::vector<void*> blocks_;
};

}  // namespace shardrec::test
