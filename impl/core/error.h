// The one error type of the library. It is thrown where a failure is noticed; capi's guard turns it
// into a status and this thread's last error; progress threads hand it to the request that waits.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "shardrec/status.h"

namespace shardrec::core {

// The parts of an error that a caller may want without parsing the sentence. Empty: unknown.
struct ErrorParts {
  std::optional<int64_t> rank = {};
  std::optional<int64_t> position = {};
  std::optional<int64_t> value = {};
  std::optional<int64_t> limit = {};
  std::optional<int64_t> sequence = {};
  std::string table = {};
  std::string feature = {};
  std::string operation = {};
  std::string path = {};
};

class Error : public std::exception {
 public:
  // sentence: what was wrong, where, what would be accepted.
  Error(shardrec_status status, std::string sentence, ErrorParts parts = {})
      : status_(status), sentence_(std::move(sentence)), parts_(std::move(parts)) {}

  const char* what() const noexcept override { return sentence_.c_str(); }
  shardrec_status status() const noexcept { return status_; }
  const std::string& sentence() const noexcept { return sentence_; }
  const ErrorParts& parts() const noexcept { return parts_; }

 private:
  shardrec_status status_;
  std::string sentence_;
  ErrorParts parts_;
};

[[noreturn]] inline void fail(shardrec_status status, std::string sentence, ErrorParts parts = {}) {
  throw Error(status, std::move(sentence), std::move(parts));
}

// "a", 3, "b" -> "a3b": builds sentences without locale or allocation surprises of streams.
inline void append(std::string& out, const char* text) { out += text; }
inline void append(std::string& out, const std::string& text) { out += text; }
inline void append(std::string& out, std::string_view text) { out += text; }
template <class Integer>
  requires std::is_integral_v<Integer>
void append(std::string& out, Integer value) {
  out += std::to_string(value);
}
template <class... Items>
std::string sentence(const Items&... items) {
  std::string out;
  (append(out, items), ...);
  return out;
}

}  // namespace shardrec::core
