#include "dense/device/context.h"

#include "compute/cuda/host/memory.h"

namespace shardrec::dense::device {

namespace host = compute::cuda::host;

Context::Context(const ContextOptions& options)
    : stream_(std::make_shared<host::Stream>(options.device, nullptr, options.wait)),
      memory_(host::make_memory(stream_)),
      order_(*stream_),
      caller_stream_(options.caller_stream) {}

Context::~Context() {
  try {
    wait();
  } catch (...) {  // the device is lost, and what it had to do
    return;
  }
}

}  // namespace shardrec::dense::device
