#include "guard.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

#include "core/json.h"
#include "last_error.h"

namespace shardrec::capi {
namespace {

shardrec_status record_unexpected(shardrec_status status, const char* what,
                                  const std::exception& error) noexcept {
  try {
    return record_error(core::Error(status, core::sentence(what, error.what())));
  } catch (...) {
    return record_fixed_error(status, what);
  }
}

}  // namespace

shardrec_status record_current_exception() noexcept {
  try {
    throw;
  } catch (const core::Error& error) {
    return record_error(error);
  } catch (const std::bad_alloc&) {
    return record_fixed_error(SHARDREC_OUT_OF_MEMORY,
                              "the host has no memory left for what this call needs");
  } catch (const std::system_error& error) {
    const bool shortage = error.code() == std::errc::resource_unavailable_try_again;
    return record_unexpected(
        shortage ? SHARDREC_OUT_OF_MEMORY : SHARDREC_INTERNAL,
        shortage ? "the system lacks a resource, such as threads: " : "a defect of the library: ",
        error);
  } catch (const std::exception& error) {
    return record_unexpected(SHARDREC_INTERNAL, "a defect of the library: ", error);
  } catch (...) {
    return record_fixed_error(SHARDREC_INTERNAL,
                              "a defect of the library: something that is no error was thrown");
  }
}

void require_out(const void* out, const char* name) {
  if (out != nullptr) return;
  core::fail(SHARDREC_INVALID_ARGUMENT,
             core::sentence(name, " is NULL; a place for the result is needed"));
}

std::string_view require_text(const char* text, const char* name) {
  if (text == nullptr) {
    core::fail(SHARDREC_INVALID_ARGUMENT, core::sentence(name, " is NULL; a UTF-8 text is needed"));
  }
  const std::string_view view(text);
  if (!core::is_utf8(view)) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence(name, " is not UTF-8; a UTF-8 text is needed"));
  }
  return view;
}

char* copy_text(std::string_view text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  if (!text.empty()) std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

void refuse_value(const char* name, int64_t value, std::string_view accepted) {
  core::fail(SHARDREC_INVALID_ARGUMENT,
             core::sentence(name, " is ", value, "; ", accepted, " is accepted"), {.value = value});
}

void refuse_value(const char* name, double value, std::string_view accepted) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  core::fail(SHARDREC_INVALID_ARGUMENT,
             core::sentence(name, " is ", std::string_view(digits.data(), end.ptr), "; ", accepted,
                            " is accepted"));
}

}  // namespace shardrec::capi
