// Bytes on a device, which tests write and read. They are copied from and to pageable memory: to free pinned memory is
// to wait for all devices, and so for peers.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "compute/cuda/host/memory.h"
#include "compute/cuda/host/stream.h"

namespace shardrec::test {

class DeviceBytes {
 public:
  DeviceBytes(const std::shared_ptr<compute::cuda::host::Stream>& stream, size_t bytes)
      : stream_(stream),
        bytes_(bytes),
        block_(compute::cuda::host::make_memory(stream)->allocate(bytes)) {}

  char* data() const { return static_cast<char*>(static_cast<void*>(block_->data)); }

  void write(const void* from) {
    stream_->copy(data(), from, bytes_);
    stream_->wait();
  }
  // What is there behind all that the stream has.
  std::string read() const {
    std::string text(bytes_, '\0');
    stream_->copy(text.data(), data(), bytes_);
    stream_->wait();
    return text;
  }

 private:
  std::shared_ptr<compute::cuda::host::Stream> stream_;
  size_t bytes_;
  std::unique_ptr<compute::Allocation> block_;
};

}  // namespace shardrec::test
