// Lists that operations read, on their way from the host to the device: written into pinned memory,
// copied to the device in the order of a stream. Nothing is allocated once lists have had their size.
//
// Thread rule: that of the stream.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>

#include "compute/buffer.h"
#include "compute/cuda/host/memory.h"

namespace shardrec::compute::cuda::host {

class Arguments {
 public:
  explicit Arguments(std::shared_ptr<Stream> stream);
  // Waits until the device has read the pinned memory.
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  // Begins the lists of one operation, all of which have at most `bytes` bytes together (bytes_of).
  // Those of the operation before stay on the device until its place in the stream.
  void begin(size_t bytes);
  // The list's address on the device. What it points to is not copied.
  template <class T>
  const T* add(std::span<const T> list) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
    return static_cast<const T*>(add(list.data(), list.size_bytes()));
  }
  // Copies the lists: what is enqueued now reads them.
  void send();

  template <class T>
  static constexpr size_t bytes_of(size_t count) {
    return (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
  }

 private:
  static constexpr size_t kAlignment = 16;
  // While the device reads one, the other is written.
  struct Room {
    explicit Room(int32_t device) : read(device) {}
    PinnedRoom memory;
    Event read;
  };

  const void* add(const void* list, size_t bytes);

  std::shared_ptr<Stream> stream_;
  Buffer on_device_;
  std::array<Room, 2> rooms_;
  size_t current_ = 0;
  size_t used_ = 0;
};

}  // namespace shardrec::compute::cuda::host
