// A device under test, and lists of the host's on it.
//
// Which plug-in is tested is the environment's choice (SHARDREC_PLUGIN_PATH): the one of CUDA on the CPU
// (tests/simt) always has a device; with the one for GPUs, tests skip where there is none.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "compute/cuda/host/memory.h"
#include "core/error.h"

namespace shardrec::test {

class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      stream_ = std::make_shared<compute::cuda::host::Stream>(0, booked_);
    } catch (const core::Error& error) {
      const bool any_device = std::strstr(compute::cuda::host::table().library, "CPU") != nullptr;
      if (any_device) throw;
      GTEST_SKIP() << "no GPU: " << error.sentence();
    }
    memory_ = compute::cuda::host::make_memory(stream_);
  }

  // Bytes on the device. What it is given is copied there before the call returns.
  class Array {
   public:
    Array(DeviceTest& test, const void* data, size_t bytes)
        : stream_(test.stream_), bytes_(bytes), block_(test.memory_->allocate(bytes)) {
      if (bytes == 0) return;
      const compute::cuda::host::PinnedMemory pinned(bytes);
      std::memcpy(pinned.data(), data, bytes);
      stream_->copy(block_->data, pinned.data(), bytes);
      stream_->wait();
    }

    void* data() { return block_->data; }
    size_t bytes_there() const { return bytes_; }
    // What is there when all operations of the stream are over.
    std::vector<std::byte> bytes() {
      std::vector<std::byte> out(bytes_);
      if (bytes_ == 0) return out;
      const compute::cuda::host::PinnedMemory pinned(bytes_);
      stream_->copy(pinned.data(), block_->data, bytes_);
      stream_->wait();
      std::memcpy(out.data(), pinned.data(), bytes_);
      return out;
    }

   private:
    std::shared_ptr<compute::cuda::host::Stream> stream_;
    size_t bytes_;
    std::unique_ptr<compute::Allocation> block_;
  };

  // A list on the device, as it is when all operations of the stream are over.
  template <class T>
  std::vector<T> read(const T* there, size_t count) {
    std::vector<T> out(count);
    if (count == 0) return out;
    const compute::cuda::host::PinnedMemory pinned(count * sizeof(T));
    stream_->copy(pinned.data(), there, count * sizeof(T));
    stream_->wait();
    std::memcpy(out.data(), pinned.data(), count * sizeof(T));
    return out;
  }

  compute::BookedBytes booked_ = std::make_shared<std::atomic<int64_t>>(0);  // of stream_
  std::shared_ptr<compute::cuda::host::Stream> stream_;
  std::shared_ptr<compute::Memory> memory_;
};

}  // namespace shardrec::test
