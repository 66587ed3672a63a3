// Part of shardrec.hpp: errors, handles, and views of contiguous memory.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDREC_CPP_BASE_HPP
#define SHARDREC_CPP_BASE_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "shardrec/status.h"
#include "shardrec/tensor.h"

namespace shardrec {

// A call that failed: what() is the sentence; parts that are not known are empty.
class Error : public std::runtime_error {
 public:
  // Of the calling thread's last error.
  explicit Error(shardrec_status status)
      : std::runtime_error(shardrec_last_error()),
        status_(status),
        rank_(number(SHARDREC_ERROR_RANK)),
        position_(number(SHARDREC_ERROR_POSITION)),
        value_(number(SHARDREC_ERROR_VALUE)),
        limit_(number(SHARDREC_ERROR_LIMIT)),
        sequence_(number(SHARDREC_ERROR_SEQUENCE)),
        table_(text(SHARDREC_ERROR_TABLE)),
        feature_(text(SHARDREC_ERROR_FEATURE)),
        operation_(text(SHARDREC_ERROR_OPERATION)),
        path_(text(SHARDREC_ERROR_PATH)) {}

  shardrec_status status() const noexcept { return status_; }
  const char *status_name() const noexcept { return shardrec_status_name(status_); }
  std::optional<int64_t> rank() const noexcept { return rank_; }
  std::optional<int64_t> position() const noexcept { return position_; }
  std::optional<int64_t> value() const noexcept { return value_; }
  std::optional<int64_t> limit() const noexcept { return limit_; }
  std::optional<int64_t> sequence() const noexcept { return sequence_; }
  const std::string &table() const noexcept { return table_; }
  const std::string &feature() const noexcept { return feature_; }
  const std::string &operation() const noexcept { return operation_; }
  const std::string &path() const noexcept { return path_; }

 private:
  static std::optional<int64_t> number(shardrec_error_part part) {
    int64_t value = 0;
    if (shardrec_last_error_i64(part, &value) != SHARDREC_OK) return std::nullopt;
    return value;
  }
  static std::string text(shardrec_error_part part);

  shardrec_status status_;
  std::optional<int64_t> rank_, position_, value_, limit_, sequence_;
  std::string table_, feature_, operation_, path_;
};

// Throws Error unless the status is OK.
inline void check(shardrec_status status) {
  if (status != SHARDREC_OK) throw Error(status);
}

namespace detail {

// Frees a text of the library at the end of the scope.
class Text {
 public:
  Text() = default;
  ~Text() { shardrec_text_free(text_); }
  Text(const Text &) = delete;
  Text &operator=(const Text &) = delete;
  char **out() noexcept { return &text_; }
  std::string str() const { return text_ == nullptr ? std::string() : std::string(text_); }
  bool empty() const noexcept { return text_ == nullptr; }

 private:
  char *text_ = nullptr;
};

// Names that contain NUL would be cut short by the C API.
inline std::string c_text(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    throw std::invalid_argument("a text for libshardrec contains NUL");
  }
  return std::string(text);
}

template <class T>
struct DtypeOf;
template <>
struct DtypeOf<uint8_t> {
  static constexpr shardrec_dtype value = SHARDREC_UINT8;
};
template <>
struct DtypeOf<int32_t> {
  static constexpr shardrec_dtype value = SHARDREC_INT32;
};
template <>
struct DtypeOf<int64_t> {
  static constexpr shardrec_dtype value = SHARDREC_INT64;
};
template <>
struct DtypeOf<float> {
  static constexpr shardrec_dtype value = SHARDREC_FLOAT32;
};
template <>
struct DtypeOf<double> {
  static constexpr shardrec_dtype value = SHARDREC_FLOAT64;
};

// Owns a handle; move-only; destroyed once.
template <class Type, void (*Destroy)(Type **)>
class Handle {
 public:
  Handle(Handle &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle &operator=(Handle &&other) noexcept {
    if (this != &other) {
      Destroy(&handle_);
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;
  ~Handle() { Destroy(&handle_); }

  // For calls of the C API; stays owned. nullptr after a move or destroy().
  Type *get() const noexcept { return handle_; }
  // Hands the handle over to the caller.
  Type *release() noexcept { return std::exchange(handle_, nullptr); }
  void destroy() noexcept { Destroy(&handle_); }

 protected:
  Handle() = default;
  explicit Handle(Type *handle) noexcept : handle_(handle) {}
  Type **out() noexcept { return &handle_; }

 private:
  Type *handle_ = nullptr;
};

}  // namespace detail

inline std::string Error::text(shardrec_error_part part) {
  detail::Text text;
  if (shardrec_last_error_text(part, text.out()) != SHARDREC_OK) return {};
  return text.str();
}

// A compact one-dimensional tensor over memory of the caller: of a std::vector, std::array, std::span,
// C array, or pointer and size. An empty container is a tensor of no elements; `none` is no tensor.
class Vector {
 public:
  Vector(std::nullptr_t) noexcept {}  // NOLINT(google-explicit-constructor): none
  template <
      class Container,
      class Element = std::remove_pointer_t<decltype(std::declval<Container &>().data())>,
      class = typename std::enable_if<!std::is_same<std::decay_t<Container>, Vector>::value>::type>
  Vector(Container &&container)  // NOLINT(google-explicit-constructor): stands for the container
      : Vector(container.data(), container.size()) {}
  template <class Element>
  Vector(Element *data, size_t size) : given_(true) {
    using Plain = std::remove_const_t<Element>;
    check(shardrec_tensor_vector(const_cast<Plain *>(data), detail::DtypeOf<Plain>::value,
                                 static_cast<int64_t>(size), &tensor_));
  }
  const shardrec_tensor *get() const noexcept { return given_ ? &tensor_ : nullptr; }

 private:
  shardrec_tensor tensor_{};
  bool given_ = false;
};

// A row-major matrix, of float32 unless a dtype is given, over memory of the caller; row_stride in elements, 0: compact.
class Matrix {
 public:
  Matrix(std::nullptr_t) noexcept {}  // NOLINT(google-explicit-constructor): none
  Matrix(const float *data, int64_t rows, int64_t cols, int64_t row_stride = 0) : given_(true) {
    check(
        shardrec_tensor_matrix(const_cast<float *>(data), SHARDREC_FLOAT32, rows, cols, &tensor_));
    if (row_stride != 0) tensor_.stride[0] = row_stride;
  }
  Matrix(const void *data, shardrec_dtype dtype, int64_t rows, int64_t cols, int64_t row_stride = 0)
      : given_(true) {
    check(shardrec_tensor_matrix(const_cast<void *>(data), dtype, rows, cols, &tensor_));
    if (row_stride != 0) tensor_.stride[0] = row_stride;
  }
  const shardrec_tensor *get() const noexcept { return given_ ? &tensor_ : nullptr; }

 private:
  shardrec_tensor tensor_{};
  bool given_ = false;
};

// What collectives take: a vector or a matrix of any dtype, or a container as Vector takes it.
class Rows {
 public:
  Rows(const Vector &vector) noexcept : given_(vector.get() != nullptr) {  // NOLINT: stands for it
    if (given_) tensor_ = *vector.get();
  }
  Rows(const Matrix &matrix) noexcept : given_(matrix.get() != nullptr) {  // NOLINT: stands for it
    if (given_) tensor_ = *matrix.get();
  }
  template <class Container, class = decltype(std::declval<Container &>().data())>
  Rows(Container &&container)  // NOLINT(google-explicit-constructor): stands for the container
      : Rows(Vector(container)) {}
  const shardrec_tensor *get() const noexcept { return given_ ? &tensor_ : nullptr; }

 private:
  shardrec_tensor tensor_{};
  bool given_ = false;
};

}  // namespace shardrec

#endif
