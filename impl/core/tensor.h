// Typed views of the tensors that callers pass: parsed once, at the border, trusted inside. A view
// function checks everything that can be known without reading the data (NULL, device, dtype,
// number of dimensions, sizes, strides, overflow) and throws INVALID_ARGUMENT or UNSUPPORTED (a
// device) with a sentence that begins with `name`, the argument's.
//
// A view carries the device that its data is on, and each view function says which devices it takes:
// those of the host, unless the caller names others.
//
// All strides zero means compact, row-major. A tensor without elements may have any data pointer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "shardrec/tensor.h"

namespace shardrec::core {

// "float32"; "unknown dtype" for any other number.
const char* dtype_name(int32_t dtype) noexcept;
// Bytes of an element, 0 for an unknown dtype.
size_t dtype_size(int32_t dtype) noexcept;

template <class T>
inline constexpr shardrec_dtype kDtypeOf = SHARDREC_DTYPE_FORCE_32;
template <>
inline constexpr shardrec_dtype kDtypeOf<int32_t> = SHARDREC_INT32;
template <>
inline constexpr shardrec_dtype kDtypeOf<int64_t> = SHARDREC_INT64;
template <>
inline constexpr shardrec_dtype kDtypeOf<float> = SHARDREC_FLOAT32;
template <>
inline constexpr shardrec_dtype kDtypeOf<double> = SHARDREC_FLOAT64;

// Where data lies, as shardrec_tensor has it.
struct Device {
  shardrec_device_type type = SHARDREC_DEVICE_CPU;
  int32_t id = 0;
};

// The devices whose tensors a call takes: the CPU, and one CUDA device or none.
struct DeviceSet {
  static constexpr int32_t kNoDevice = -1;
  int32_t cuda = kNoDevice;

  bool has(const shardrec_tensor& tensor) const noexcept {
    if (tensor.device_type == SHARDREC_DEVICE_CUDA) {
      return cuda != kNoDevice && tensor.device_id == cuda;
    }
    return tensor.device_type == SHARDREC_DEVICE_CPU;
  }
};
inline constexpr DeviceSet kHostOnly{};

// Accepts any number and size.
inline constexpr int64_t kAnySize = -1;

// A compact tensor of any shape and dtype: its elements one after the other.
struct FlatView {
  void* data = nullptr;
  int64_t size = 0;  // elements
  int32_t dtype = 0;

  // The elements as T, which must be what dtype says.
  template <class T>
  std::span<T> as() const noexcept {
    return {static_cast<T*>(data), static_cast<size_t>(size)};
  }
};

// A compact CPU tensor of this shape over memory of the library.
shardrec_tensor compact_view(void* data, shardrec_dtype dtype, std::span<const int64_t> shape);

// Takes a compact CPU tensor of a known dtype and any number of dimensions.
FlatView flat_view(const shardrec_tensor* tensor, const char* name);

// Takes a compact tensor of one dimension, `size` elements (or kAnySize) of one of the two dtypes.
FlatView id_view(const shardrec_tensor* tensor, const char* name, int64_t size = kAnySize,
                 shardrec_dtype first = SHARDREC_INT64, shardrec_dtype second = SHARDREC_INT32);

namespace detail {
FlatView vector_of(const shardrec_tensor* tensor, const char* name, shardrec_dtype dtype,
                   int64_t size, bool column_allowed, DeviceSet devices = kHostOnly);
}  // namespace detail

// Takes a compact tensor of one dimension, `size` elements (or kAnySize) of type T, on one of the devices.
template <class T>
std::span<T> vector_view(const shardrec_tensor* tensor, const char* name, int64_t size = kAnySize,
                         DeviceSet devices = kHostOnly) {
  const FlatView flat = detail::vector_of(tensor, name, kDtypeOf<T>, size, false, devices);
  return flat.as<T>();
}

// As vector_view; [size, 1] is accepted too.
template <class T>
std::span<T> column_view(const shardrec_tensor* tensor, const char* name, int64_t size = kAnySize,
                         DeviceSet devices = kHostOnly) {
  const FlatView flat = detail::vector_of(tensor, name, kDtypeOf<T>, size, true, devices);
  return flat.as<T>();
}

// Rows with unit column stride, row r at data + r * stride, stride >= cols.
struct Matrix {
  float* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;

  float* row(int64_t r) const noexcept { return data + r * stride; }
  bool compact() const noexcept { return stride == cols || rows <= 1; }
};

// Takes a FLOAT32 tensor [rows, cols] (or kAnySize each). The strides of a dimension of one
// element or none do not matter.
Matrix matrix_view(const shardrec_tensor* tensor, const char* name, int64_t rows = kAnySize,
                   int64_t cols = kAnySize);

// A Matrix of elements of any one dtype.
struct AnyMatrix {
  void* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;  // elements
  Device device;
};
AnyMatrix any_matrix_view(const shardrec_tensor* tensor, const char* name, shardrec_dtype dtype,
                          int64_t rows = kAnySize, int64_t cols = kAnySize,
                          DeviceSet devices = kHostOnly);

}  // namespace shardrec::core
