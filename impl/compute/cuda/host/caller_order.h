// A stream of the library joined to a stream of the caller, at the beginning and at the end of a call.
//
// Thread rule: that of the stream.
#pragma once

#include <cstdint>

#include "compute/cuda/host/stream.h"

namespace shardrec::compute::cuda::host {

// caller: the value of a cudaStream_t. All functions throw INVALID_ARGUMENT where it is no stream of the
// device, and DEVICE_ERROR.
class CallerOrder {
 public:
  // stream: of the library.
  explicit CallerOrder(const Stream& stream) : of_caller_(stream), for_caller_(stream) {}

  // What is enqueued in the stream from now on takes place behind what the caller's holds.
  void follow(int64_t caller, Stream& stream) {
    of_caller_.record_caller(caller);
    stream.follow(of_caller_);
  }
  // What the caller enqueues from now on takes place behind what the stream holds.
  void hold_up(int64_t caller, Stream& stream) {
    for_caller_.record(stream);
    for_caller_.hold_up_caller(caller);
  }
  // The host waits for the place of the last hold_up().
  void wait() const { for_caller_.wait(); }

 private:
  Event of_caller_;   // where the caller's stream was
  Event for_caller_;  // where the operations were that it waits for
};

}  // namespace shardrec::compute::cuda::host
