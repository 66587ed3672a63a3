// Part of shardrec.hpp: memory of devices, and copies of tensors.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDREC_CPP_MEMORY_HPP
#define SHARDREC_CPP_MEMORY_HPP

#include <cstdint>
#include <initializer_list>

#include "shardrec/cpp/tensor.hpp"
#include "shardrec/memory.h"
#include "shardrec/native.h"

namespace shardrec {

// Zeros on a device or on the CPU. Views of it are valid while it lives.
//
//   shardrec::Memory ids(SHARDREC_DEVICE_CUDA, 0, 8 * count);
//   shardrec::copy(ids.vector(SHARDREC_INT64, count), host_ids);
//   lookup.begin(batch_size, ids.vector(SHARDREC_INT64, count), lengths);
class Memory : public detail::Handle<shardrec_memory, shardrec_memory_destroy> {
 public:
  Memory(shardrec_device_type type, int32_t device_id, int64_t bytes) {
    check(shardrec_memory_create(type, device_id, bytes, nullptr, out()));
  }
  using Handle::Handle;

  Tensor tensor(shardrec_dtype dtype, std::initializer_list<int64_t> shape,
                int64_t offset_bytes = 0) const {
    return view(dtype, shape, offset_bytes);
  }
  Vector vector(shardrec_dtype dtype, int64_t length, int64_t offset_bytes = 0) const {
    return Vector(view(dtype, {length}, offset_bytes));
  }
  Matrix matrix(shardrec_dtype dtype, int64_t rows, int64_t cols, int64_t offset_bytes = 0) const {
    return Matrix(view(dtype, {rows, cols}, offset_bytes));
  }

 private:
  shardrec_tensor view(shardrec_dtype dtype, std::initializer_list<int64_t> shape,
                       int64_t offset_bytes) const {
    shardrec_tensor view{};
    check(shardrec_memory_tensor(get(), offset_bytes, dtype, static_cast<int32_t>(shape.size()),
                                 shape.begin(), &view));
    return view;
  }
};

// stream: the value of a cudaStream_t; 0: the legacy default stream.
inline void copy(const Tensor &to, const Tensor &from, int64_t stream = 0) {
  check(shardrec_tensor_copy(to.get(), from.get(), stream));
}

// Where memory of devices comes from from now on; both nullptr: CUDA. native.h says what they may do.
inline void set_device_allocator(shardrec_device_allocate allocate, shardrec_device_release release,
                                 void *context = nullptr) {
  check(shardrec_device_set_allocator(allocate, release, context));
}

}  // namespace shardrec

#endif
