// Part of shardrec.hpp: views of the caller's memory.
//
// A view does not own what it shows and is as cheap as a pointer and its sizes: calls take them by
// const reference, made in place of containers. The C API has one type for what is read and for what
// is written, so that memory which is const may be viewed too; which tensors a call writes to, the C
// headers say.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDREC_CPP_TENSOR_HPP
#define SHARDREC_CPP_TENSOR_HPP

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "shardrec/cpp/base.hpp"
#include "shardrec/tensor.h"

namespace shardrec {
namespace detail {

template <shardrec_dtype Value>
using Dtype = std::integral_constant<shardrec_dtype, Value>;

template <class T>
struct DtypeOf;
template <>
struct DtypeOf<char> : Dtype<SHARDREC_UINT8> {};
template <>
struct DtypeOf<uint8_t> : Dtype<SHARDREC_UINT8> {};
template <>
struct DtypeOf<std::byte> : Dtype<SHARDREC_UINT8> {};
template <>
struct DtypeOf<int32_t> : Dtype<SHARDREC_INT32> {};
template <>
struct DtypeOf<int64_t> : Dtype<SHARDREC_INT64> {};
template <>
struct DtypeOf<float> : Dtype<SHARDREC_FLOAT32> {};
template <>
struct DtypeOf<double> : Dtype<SHARDREC_FLOAT64> {};

}  // namespace detail

// A view of any shape, or none. A container with data() and size(), such as std::vector, std::array,
// std::span or std::string, is a vector of its elements; an empty one is a tensor of no elements.
class Tensor {
 public:
  Tensor(std::nullptr_t) noexcept {}              // NOLINT(google-explicit-constructor): none
  Tensor(const shardrec_tensor &tensor) noexcept  // NOLINT(google-explicit-constructor): the same
      : tensor_(tensor), given_(true) {}
  template <class Container,
            class = std::enable_if_t<!std::is_base_of<Tensor, std::decay_t<Container>>::value>,
            class Element = std::remove_pointer_t<decltype(std::declval<Container &>().data())>>
  Tensor(Container &&container)  // NOLINT(google-explicit-constructor): stands for the container
      : Tensor(container.data(), container.size()) {}

  // For calls of the C API; nullptr: none.
  const shardrec_tensor *get() const noexcept { return given_ ? &tensor_ : nullptr; }
  shardrec_dtype dtype() const noexcept { return static_cast<shardrec_dtype>(tensor_.dtype); }
  int32_t dimensions() const noexcept { return tensor_.ndim; }
  int64_t size(int32_t dimension) const noexcept { return tensor_.shape[dimension]; }
  int64_t elements() const noexcept {
    if (!given_) return 0;
    int64_t elements = 1;
    for (int32_t d = 0; d < tensor_.ndim; ++d) elements *= tensor_.shape[d];
    return elements;
  }
  // The memory itself. Throws std::invalid_argument where elements are of another type.
  template <class Element>
  Element *data() const {
    if (tensor_.dtype != detail::DtypeOf<std::remove_const_t<Element>>::value) {
      throw std::invalid_argument("a tensor holds elements of another type");
    }
    return static_cast<Element *>(tensor_.data);
  }

 protected:
  template <class Element>
  Tensor(Element *data, size_t size) : given_(true) {
    using Plain = std::remove_const_t<Element>;
    check(shardrec_tensor_vector(const_cast<Plain *>(data), detail::DtypeOf<Plain>::value,
                                 static_cast<int64_t>(size), &tensor_));
  }
  Tensor(const void *data, shardrec_dtype dtype, int64_t rows, int64_t cols, int64_t row_stride)
      : given_(true) {
    check(shardrec_tensor_matrix(const_cast<void *>(data), dtype, rows, cols, &tensor_));
    if (row_stride != 0) tensor_.stride[0] = row_stride;
  }

 private:
  shardrec_tensor tensor_{};
  bool given_ = false;
};

// A compact view of one dimension: of a container, of a pointer and a size, or as the C API has it, which
// may be on a device.
class Vector : public Tensor {
 public:
  explicit Vector(const shardrec_tensor &tensor) noexcept : Tensor(tensor) {}
  Vector(std::nullptr_t) noexcept : Tensor(nullptr) {}  // NOLINT(google-explicit-constructor): none
  template <class Container,
            class = std::enable_if_t<!std::is_base_of<Tensor, std::decay_t<Container>>::value>,
            class Element = std::remove_pointer_t<decltype(std::declval<Container &>().data())>>
  Vector(Container &&container)  // NOLINT(google-explicit-constructor): stands for the container
      : Tensor(std::forward<Container>(container)) {}
  template <class Element>
  Vector(Element *data, size_t size) : Tensor(data, size) {}
};

// A row-major matrix, of float32 unless a dtype is given; row_stride in elements, 0: compact. Or as the C
// API has it.
class Matrix : public Tensor {
 public:
  explicit Matrix(const shardrec_tensor &tensor) noexcept : Tensor(tensor) {}
  Matrix(std::nullptr_t) noexcept : Tensor(nullptr) {}  // NOLINT(google-explicit-constructor): none
  Matrix(const float *data, int64_t rows, int64_t cols, int64_t row_stride = 0)
      : Tensor(data, SHARDREC_FLOAT32, rows, cols, row_stride) {}
  Matrix(const void *data, shardrec_dtype dtype, int64_t rows, int64_t cols, int64_t row_stride = 0)
      : Tensor(data, dtype, rows, cols, row_stride) {}
};

}  // namespace shardrec

#endif
