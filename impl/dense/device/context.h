// A device that layers compute on: the stream and the memory of their operations, and the caller's stream that
// they are ordered by.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "compute/buffer.h"
#include "compute/cuda/host/caller_order.h"
#include "compute/cuda/host/stream.h"
#include "compute/host_wait.h"

namespace shardrec::dense::device {

struct ContextOptions {
  int32_t device = -1;        // -1: the CPU, which has no context
  int64_t caller_stream = 0;  // the value of a cudaStream_t; 0: the legacy default stream
  compute::HostWait wait = compute::HostWait::kSleep;
};

class Context {
 public:
  // Throws UNSUPPORTED (no plug-in), INVALID_ARGUMENT (no such device), OUT_OF_MEMORY, DEVICE_ERROR.
  explicit Context(const ContextOptions& options);
  // Returns when the operations are over.
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  compute::cuda::host::Stream& stream() noexcept { return *stream_; }
  const std::shared_ptr<compute::cuda::host::Stream>& shared_stream() noexcept { return stream_; }
  const std::shared_ptr<compute::Memory>& memory() const noexcept { return memory_; }
  int32_t device() const noexcept { return stream_->device(); }

  // What is enqueued from now on takes place behind what the caller's stream holds. Throws INVALID_ARGUMENT where
  // that is no stream of the device, and DEVICE_ERROR.
  void follow_caller() { order_.follow(caller_stream_, *stream_); }
  // What the caller enqueues there from now on takes place behind what is enqueued. Throws as follow_caller().
  void hold_up_caller() { order_.hold_up(caller_stream_, *stream_); }
  // Throws DEVICE_ERROR.
  void wait() { stream_->wait(); }

 private:
  std::shared_ptr<compute::cuda::host::Stream> stream_;
  std::shared_ptr<compute::Memory> memory_;
  compute::cuda::host::CallerOrder order_;
  int64_t caller_stream_;
};

}  // namespace shardrec::dense::device
