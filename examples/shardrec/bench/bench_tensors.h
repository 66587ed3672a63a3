// What a rank of a benchmark gives to its lookup: tensors where its tables are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <shardrec/shardrec.hpp>
#include <vector>

namespace shardrec::cli {

// Bytes that begin a cache line, as hosts keep their matrices.
template <typename T>
struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <typename U>
  explicit LineAllocator(const LineAllocator<U>& /*other*/) {}
  T* allocate(size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t{64}));
  }
  void deallocate(T* memory, size_t /*count*/) noexcept {
    ::operator delete(memory, std::align_val_t{64});
  }
  bool operator==(const LineAllocator& /*other*/) const = default;
};
using LineBytes = std::vector<std::byte, LineAllocator<std::byte>>;

// Views of the host's memory, or of copies on a device.
class BenchTensors {
 public:
  explicit BenchTensors(int64_t device) : device_(device) {}  // as SHARDREC_OPTION_DEVICE takes it

  // On the host they view what they are made of.
  Vector place(const std::vector<int64_t>& values);
  Matrix place(const LineBytes& bytes, shardrec_dtype dtype, int64_t rows, int64_t cols);

 private:
  const Memory& allocate(size_t bytes);

  int64_t device_;
  std::vector<Memory> copies_;
};

}  // namespace shardrec::cli
