// Memory that holds tables and exchange buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shardrec::core {

// Asks for memory that will be touched: throws OUT_OF_MEMORY when this machine or the process's
// cgroup has less left (host.h), because the system promises more than it has and ends a process
// later. Sizes below 64 MiB always pass. `what` begins the sentence.
void require_room(uint64_t bytes, const char* what);

// Zero-filled pages that cost nothing until they are touched; 2 MiB-aligned and advised to use huge
// pages from 2 MiB on. What is smaller than a page is the allocator's, 64-byte aligned: the system allows
// a process few mappings, and a thousand ranks have many small boxes. Throws OUT_OF_MEMORY with the size.
// Move-only.
class Pages {
 public:
  Pages() = default;
  explicit Pages(size_t bytes);
  ~Pages();
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&& other) noexcept;

  std::byte* data() noexcept { return data_; }
  const std::byte* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }

  // They are zero again, and cost nothing until they are touched; views of them stay views of memory.
  void clear() noexcept;

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;    // as asked for
  size_t mapped_ = 0;  // as mapped; 0: it is not
};

// A 64-byte aligned buffer that only grows, to a sixteenth more than asked, so that steps of about
// one size allocate nothing. Growing discards the contents. Not thread-safe.
class Scratch {
 public:
  // At least `bytes` bytes at 64-byte alignment, valid until the next call. Throws OUT_OF_MEMORY,
  // also as require_room().
  std::byte* resize(size_t bytes);
  std::byte* data() noexcept { return pages_.get(); }
  const std::byte* data() const noexcept { return pages_.get(); }
  size_t capacity() const noexcept { return capacity_; }

  template <class T>
  std::span<T> resize_as(size_t count) {
    return {static_cast<T*>(static_cast<void*>(resize(count * sizeof(T)))), count};
  }

 private:
  struct Free {
    void operator()(std::byte* data) const noexcept;
  };
  std::unique_ptr<std::byte, Free> pages_;
  size_t capacity_ = 0;
};

// Room for `count` elements of an empty vector, growing as Scratch does.
template <class T>
void reserve_with_slack(std::vector<T>& vector, size_t count) {
  if (count > vector.capacity()) vector.reserve(count + count / 16 + 16);
}

}  // namespace shardrec::core
