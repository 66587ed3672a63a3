// Memory of a device, and memory of the host that devices copy from and to by themselves.
//
// Thread rule: a Memory of a device, and its blocks, by the thread of its stream; pinned memory by any.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "compute/buffer.h"
#include "compute/cuda/host/stream.h"

namespace shardrec::compute::cuda::host {

// Memory of the stream's device, to be used in the order of the stream, which it keeps alive.
std::shared_ptr<Memory> make_memory(std::shared_ptr<Stream> stream);

// Memory of the host that operations of devices reach too.
std::shared_ptr<Memory> make_pinned_memory();

// Bytes of such memory.
class PinnedMemory {
 public:
  // Throws OUT_OF_MEMORY.
  explicit PinnedMemory(size_t bytes);

  std::byte* data() const noexcept { return data_.get(); }
  size_t size() const noexcept { return size_; }

 private:
  struct Deleter {
    void operator()(std::byte* data) const noexcept { table().release_pinned(data); }
  };
  std::unique_ptr<std::byte, Deleter> data_;
  size_t size_;
};

// Such memory that grows. What it has outgrown is given back with it, not before: to give pinned memory back
// is to wait for all that the devices do.
class PinnedRoom {
 public:
  // At least so many bytes, of any content, valid until the next call. Throws OUT_OF_MEMORY.
  std::byte* resize(size_t bytes);
  std::byte* data() const noexcept { return blocks_.empty() ? nullptr : blocks_.back().data(); }

 private:
  std::vector<PinnedMemory> blocks_;  // the last one is in use
};

}  // namespace shardrec::compute::cuda::host
