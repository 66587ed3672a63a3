#include "compute/cuda/host/memory.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "compute/cuda/host/allocator.h"

namespace shardrec::compute::cuda::host {
namespace {

std::byte* allocate_pinned(size_t bytes) {
  void* data = nullptr;
  require(table().allocate_pinned(bytes, &data), "pin ", bytes, " bytes of the host's memory");
  return static_cast<std::byte*>(data);
}

// All that was outgrown is together no more than this.
size_t size_with_growth(size_t bytes) { return std::bit_ceil(std::max<size_t>(bytes, 64)); }

struct DeviceBlock final : Allocation {
  DeviceBlock(std::shared_ptr<Stream> stream, size_t bytes) : stream_(std::move(stream)) {
    data = static_cast<std::byte*>(allocator_.get(*stream_, bytes));
    size = bytes;
  }
  ~DeviceBlock() override { allocator_.give_back(*stream_, data, size); }

 private:
  std::shared_ptr<Stream> stream_;
  Allocator allocator_ = allocator();
};

class DeviceMemory final : public Memory {
 public:
  explicit DeviceMemory(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}

  shardrec_device_type device() const noexcept override { return SHARDREC_DEVICE_CUDA; }
  std::unique_ptr<Allocation> allocate(size_t bytes) override {
    return std::make_unique<DeviceBlock>(stream_, bytes + bytes / 16 + 1);
  }
  std::unique_ptr<Allocation> allocate_zeros(size_t bytes) override {
    auto block = std::make_unique<DeviceBlock>(stream_, bytes + 1);
    require(table().fill(stream_->handle(), block->data, 0, bytes), "zero ", bytes,
            " bytes on device ", stream_->device());
    return block;
  }

 private:
  std::shared_ptr<Stream> stream_;
};

struct PinnedBlock final : Allocation {
  explicit PinnedBlock(size_t bytes) : memory_(bytes) {
    data = memory_.data();
    size = memory_.size();
  }

 private:
  PinnedMemory memory_;
};

class PinnedHostMemory final : public Memory {
 public:
  shardrec_device_type device() const noexcept override { return SHARDREC_DEVICE_CPU; }
  std::unique_ptr<Allocation> allocate(size_t bytes) override {
    return std::make_unique<PinnedBlock>(size_with_growth(bytes));
  }
  bool freeing_waits() const noexcept override { return true; }
  std::unique_ptr<Allocation> allocate_zeros(size_t bytes) override {
    auto block = std::make_unique<PinnedBlock>(bytes + 1);
    std::memset(block->data, 0, block->size);
    return block;
  }
};

}  // namespace

std::shared_ptr<Memory> make_memory(std::shared_ptr<Stream> stream) {
  const BookedBytes booked = stream->booked();
  return book(std::make_shared<DeviceMemory>(std::move(stream)), booked);
}

std::shared_ptr<Memory> make_pinned_memory() { return std::make_shared<PinnedHostMemory>(); }

PinnedMemory::PinnedMemory(size_t bytes) : data_(allocate_pinned(bytes)), size_(bytes) {}

std::byte* PinnedRoom::resize(size_t bytes) {
  if (blocks_.empty() || blocks_.back().size() < bytes) {
    blocks_.emplace_back(size_with_growth(bytes));
  }
  return blocks_.back().data();
}

}  // namespace shardrec::compute::cuda::host
