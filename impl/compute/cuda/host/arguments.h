// Lists that operations read, on their way from the host to the device: written into pinned memory,
// copied to the device in the order of a stream. Lists that are those of four operations before are there
// already: steps of equal batches copy none, also where they take turns with memory, or two operations
// of a step are of one object. Nothing is allocated once lists have had their size.
//
// Thread rule: that of the stream.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "compute/buffer.h"
#include "compute/cuda/host/memory.h"

namespace shardrec::compute::cuda::host {

// From one place to another, in whichever memory: lists name by it what lies elsewhere in the next step, of a place
// that the kernel is told.
inline int64_t bytes_between(const void* from, const void* to) noexcept {
  return static_cast<int64_t>(std::bit_cast<uintptr_t>(to) - std::bit_cast<uintptr_t>(from));
}

class Arguments {
 public:
  explicit Arguments(std::shared_ptr<Stream> stream);
  // Waits until the device has read the pinned memory.
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  // Begins the lists of one operation, all of which have at most `bytes` bytes together (bytes_of).
  // Those of the three operations before stay on the device until the next call.
  void begin(size_t bytes);
  // The list's address on the device. What it points to is not copied.
  template <class T>
  const T* add(std::span<const T> list) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
    return static_cast<const T*>(add(list.data(), list.size_bytes()));
  }
  // Copies the lists, if the device has others: what is enqueued now reads them.
  void send();

  template <class T>
  static constexpr size_t bytes_of(size_t count) {
    return (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
  }

 private:
  static constexpr size_t kAlignment = 16;
  struct Room {
    explicit Room(const std::shared_ptr<Stream>& stream)
        : on_device(make_memory(stream)), read(*stream) {}
    PinnedRoom memory;
    Buffer on_device;
    Event read;
    size_t sent = 0;  // bytes from the first one on that are the same on the device
  };

  const void* add(const void* list, size_t bytes);
  // Bytes of the room in use are written, or stay as they are.
  void write(Room& room, size_t at, const void* bytes, size_t count);

  std::shared_ptr<Stream> stream_;
  std::array<Room, 4> rooms_;  // taken in turns: while the device reads one, others are written
  size_t capacity_ = 0;        // of each
  size_t current_ = 0;
  size_t used_ = 0;
  bool may_write_ = false;  // the device has read the room in use
};

}  // namespace shardrec::compute::cuda::host
