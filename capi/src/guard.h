// What every entry of the C API is wrapped in. guard() runs a body, lets no exception out, and
// turns what was thrown into a status and this thread's last error:
//   core::Error -> its status, sentence and parts      std::bad_alloc -> OUT_OF_MEMORY
//   anything else -> INTERNAL with what() where there is one
// Recording an error needs memory for its texts; when there is none, the status stands and the
// sentence is a fixed one. Thread rule: the last error is thread-local; all functions from any
// thread.
//
//   shardrec_status shardrec_comm_rank(const shardrec_comm* comm, int32_t* out) {
//     return guard([&] {
//       require_out(out, "out");
//       const auto use = enter(comm, Access::kShared);
//       *out = use->communicator->rank();
//     });
//   }
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "shardrec/status.h"

namespace shardrec::capi {

// Call inside a catch block: records what is being handled as this thread's last error.
shardrec_status record_current_exception() noexcept;

template <class Body>
shardrec_status guard(Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return SHARDREC_OK;
  } catch (...) {
    return record_current_exception();
  }
}

// INVALID_ARGUMENT when an out-parameter that must be given is NULL.
void require_out(const void* out, const char* name);

// The text of an argument: INVALID_ARGUMENT when it is NULL or not UTF-8, naming the argument.
std::string_view require_text(const char* text, const char* name);

// A copy that shardrec_text_free frees. Throws std::bad_alloc.
char* copy_text(std::string_view text);

// Such a copy that is freed unless it is handed out. Throws std::bad_alloc.
class OutText {
 public:
  // out: where the text goes; NULL where the caller does not want it.
  OutText(char** out, std::string_view text)
      : out_(out), text_(out == nullptr ? nullptr : copy_text(text)) {}
  ~OutText() { shardrec_text_free(text_); }
  OutText(const OutText&) = delete;
  OutText& operator=(const OutText&) = delete;

  void give() noexcept {
    if (out_ != nullptr) *out_ = std::exchange(text_, nullptr);
  }

 private:
  char** out_;
  char* text_;
};

// Throws INVALID_ARGUMENT "<name> is <value>; <accepted> is accepted" with VALUE.
[[noreturn]] void refuse_value(const char* name, int64_t value, std::string_view accepted);
[[noreturn]] void refuse_value(const char* name, double value, std::string_view accepted);

}  // namespace shardrec::capi
