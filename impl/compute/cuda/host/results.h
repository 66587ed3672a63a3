// What operations tell the host: written into memory of the device, copied into pinned memory. Nothing
// is allocated once results have had their size.
//
// Thread rule: that of the stream.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "compute/buffer.h"
#include "compute/cuda/host/memory.h"

namespace shardrec::compute::cuda::host {

class Results {
 public:
  explicit Results(std::shared_ptr<Stream> stream);

  // Room on the device for `count` results, every byte of which is `byte`: for operations that are
  // enqueued behind this call. So are work_bytes bytes more, for these operations alone: work().
  template <class T>
  T* begin(size_t count, uint8_t byte, size_t work_bytes = 0) {
    return static_cast<T*>(begin_bytes(count * sizeof(T), byte, work_bytes));
  }
  // 8-byte aligned.
  std::byte* work() { return on_device_.data() + work_at(); }
  // Has them copied to the host, behind what is enqueued.
  void send();
  // Waits until they are there: valid until the next begin(). After send().
  template <class T>
  std::span<const T> get() {
    const std::byte* const data = get_bytes();
    return {static_cast<const T*>(static_cast<const void*>(data)), bytes_ / sizeof(T)};
  }
  // Until they are there.
  void wait();
  // What is enqueued in another stream from now on takes place when they are there. After send().
  void hold_up(Stream& other) const { other.follow(there_); }
  // Would get() return at once, as far as the host knows? It does when it has waited for something behind them.
  bool known() const { return known_; }
  void know() { known_ = true; }
  // Both at once, for what the host cannot go on without.
  template <class T>
  std::span<const T> fetch() {
    send();
    wait();
    return get<T>();
  }

 private:
  void* begin_bytes(size_t bytes, uint8_t byte, size_t work_bytes);
  size_t work_at() const { return (bytes_ + 7) / 8 * 8; }
  const std::byte* get_bytes();

  std::shared_ptr<Stream> stream_;
  Buffer on_device_;
  PinnedRoom on_host_;
  Event there_;
  size_t bytes_ = 0;
  bool known_ = false;
};

}  // namespace shardrec::compute::cuda::host
