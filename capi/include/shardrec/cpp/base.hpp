// Part of shardrec.hpp: errors, texts and handles.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDREC_CPP_BASE_HPP
#define SHARDREC_CPP_BASE_HPP

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "shardrec/status.h"

namespace shardrec {

// A call that failed: what() is the sentence; parts that are not known are empty.
class Error : public std::runtime_error {
 public:
  // The calling thread's last error; status: what its call returned.
  explicit Error(shardrec_status status = shardrec_last_error_status())
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
  // The same error with another sentence, such as the old one behind the name of a file.
  Error(const Error &cause, const std::string &sentence) : Error(cause) {
    std::runtime_error::operator=(std::runtime_error(sentence));
  }

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

// The same for calls that may not find what they are asked for: false for NOT_FOUND.
inline bool found(shardrec_status status) {
  if (status == SHARDREC_NOT_FOUND) return false;
  check(status);
  return true;
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

// Owns a handle of the C API, or none; move-only; destroyed once.
template <class Type, void (*Destroy)(Type **)>
class Handle {
 public:
  // Takes a handle over.
  explicit Handle(Type *handle) noexcept : handle_(handle) {}
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

  // For calls of the C API; stays owned. nullptr after a move, release() or destroy().
  Type *get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  // Hands the handle over to the caller.
  Type *release() noexcept { return std::exchange(handle_, nullptr); }
  void destroy() noexcept { Destroy(&handle_); }

 protected:
  Handle() = default;
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

}  // namespace shardrec

#endif
