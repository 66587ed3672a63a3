#include "structs.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "core/error.h"
#include "guard.h"

namespace shardrec::capi {
namespace {

// No struct of this API comes near: a larger number is one that nobody has set.
constexpr int64_t kMostBytes = 4096;

// The size that the caller has set, of a struct of `known` bytes.
size_t size_of(const void* given, size_t known, const char* name) {
  require_out(given, name);
  int64_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size < static_cast<int64_t>(sizeof size) || size > kMostBytes) {
    refuse_value((std::string(name) + ".struct_size").c_str(), size,
                 core::sentence("the size of the struct, ", known, " bytes in this release,"));
  }
  return static_cast<size_t>(size);
}

}  // namespace

void copy_struct_in(void* to, size_t size, const void* given, const char* name) {
  const size_t whole = size_of(given, size, name);
  std::memcpy(to, given, std::min(size, whole));
  if (whole <= size) return;
  const std::span<const std::byte> unknown(static_cast<const std::byte*>(given) + size,
                                           whole - size);
  if (std::ranges::any_of(unknown, [](std::byte byte) { return byte != std::byte{0}; })) {
    core::fail(
        SHARDREC_UNSUPPORTED,
        core::sentence(
            name, " is a struct of a later release with ", whole,
            " bytes, and has members set that this release does not know; it knows the first ",
            size, " bytes"));
  }
}

void copy_struct_out(void* out, const void* value, size_t size, const char* name) {
  const size_t whole = size_of(out, size, name);
  const size_t own = sizeof(int64_t);  // struct_size stays the caller's
  if (whole > own) {
    std::memcpy(static_cast<std::byte*>(out) + own, static_cast<const std::byte*>(value) + own,
                std::min(size, whole) - own);
  }
}

}  // namespace shardrec::capi
