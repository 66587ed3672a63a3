#include "guard.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <new>

#include "last_error.h"

namespace shardrec::capi {
namespace {

// Length of the UTF-8 sequence at text, 0 when there is no valid one (overlong forms, surrogates
// and code points above 0x10ffff are not valid).
size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto continues = [&](size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xc2) return 0;
  if (first < 0xe0) return continues(1) ? 2 : 0;
  if (first < 0xf0) {
    if (first == 0xe0 && byte(1) < 0xa0) return 0;
    if (first == 0xed && byte(1) >= 0xa0) return 0;
    return continues(1) && continues(2) ? 3 : 0;
  }
  if (first > 0xf4) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) >= 0x90) return 0;
  return continues(1) && continues(2) && continues(3) ? 4 : 0;
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
  } catch (const std::exception& error) {
    try {
      return record_error(core::Error(SHARDREC_INTERNAL,
                                      core::sentence("a defect of the library: ", error.what())));
    } catch (...) {
      return record_fixed_error(SHARDREC_INTERNAL, "a defect of the library");
    }
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
  for (size_t at = 0; at < view.size();) {
    const size_t length = utf8_length(view.substr(at));
    if (length == 0) {
      core::fail(SHARDREC_INVALID_ARGUMENT,
                 core::sentence(name, " is not UTF-8: byte ", at,
                                " does not begin a valid character; UTF-8 is accepted"),
                 {.position = static_cast<int64_t>(at)});
    }
    at += length;
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
