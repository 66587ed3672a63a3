// Memory of a back end, and buffers in it. What lies in it is read and written by the operations of
// the back end only; the host knows its address and its size.
//
// Thread rule: a Memory may be used by any thread, a Buffer by one at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "shardrec/tensor.h"

namespace shardrec::compute {

// Bytes that were allocated at once; freed with the object.
struct Allocation {
  Allocation() = default;
  virtual ~Allocation() = default;
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  std::byte* data = nullptr;  // 64-byte aligned
  size_t size = 0;
};

// Where blocks come from. Both throw OUT_OF_MEMORY.
class Memory {
 public:
  virtual ~Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  virtual shardrec_device_type device() const noexcept = 0;
  // At least `bytes` bytes of any content; some more where it will grow, so that steps of about one
  // size allocate nothing.
  virtual std::unique_ptr<Allocation> allocate(size_t bytes) = 0;
  // Does freeing a block wait for more than its own users? Buffers free those that they have outgrown late then.
  virtual bool freeing_waits() const noexcept { return false; }
  // Zeros that take no memory until they are written, where the device can do that: for tables.
  virtual std::unique_ptr<Allocation> allocate_zeros(size_t bytes) = 0;

 protected:
  Memory() = default;
};

// Memory that only grows. Growing discards the contents.
class Buffer {
 public:
  explicit Buffer(std::shared_ptr<Memory> memory) : memory_(std::move(memory)) {}

  // At least `bytes` bytes, valid until the next call. Throws OUT_OF_MEMORY; the buffer is then
  // empty.
  std::byte* resize(size_t bytes) {
    if (block_ == nullptr || block_->size < bytes) {
      if (block_ != nullptr && memory_->freeing_waits()) outgrown_.push_back(std::move(block_));
      block_.reset();  // before the new allocation: the contents are not kept
      block_ = memory_->allocate(bytes);
    }
    return block_->data;
  }
  template <class T>
  std::span<T> resize_as(size_t count) {
    return {static_cast<T*>(static_cast<void*>(resize(count * sizeof(T)))), count};
  }

  std::byte* data() noexcept { return block_ == nullptr ? nullptr : block_->data; }
  const std::byte* data() const noexcept { return block_ == nullptr ? nullptr : block_->data; }
  size_t capacity() const noexcept { return block_ == nullptr ? 0 : block_->size; }
  shardrec_device_type device() const noexcept { return memory_->device(); }

 private:
  std::shared_ptr<Memory> memory_;
  std::unique_ptr<Allocation> block_;
  std::vector<std::unique_ptr<Allocation>> outgrown_;  // freed with the buffer
};

// The memory of the CPU's back end, which is the host's.
const std::shared_ptr<Memory>& cpu_memory();

}  // namespace shardrec::compute
