// Structs of the C API that grow with later releases. Their first member, struct_size, says how much of one
// the caller has: what is missing of an input is zero, and of an output it is not written. Of a larger
// input, from a program that was built with a later release, the part that this one does not know must be
// zero.
//
//   const shardrec_box box = read_struct(given, "box");
//   write_struct(out, "out", shardrec_place{...});
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace shardrec::capi {

// Throws INVALID_ARGUMENT for NULL and for a size that is none, UNSUPPORTED for members that are not known.
void copy_struct_in(void* to, size_t size, const void* given, const char* name);
// Throws INVALID_ARGUMENT likewise.
void copy_struct_out(void* out, const void* value, size_t size, const char* name);

template <class Struct>
concept Growing = std::is_trivially_copyable_v<Struct> && offsetof(Struct, struct_size) == 0 &&
                  std::is_same_v<decltype(Struct::struct_size), int64_t>;

template <Growing Struct>
Struct read_struct(const Struct* given, const char* name) {
  Struct own{};
  copy_struct_in(&own, sizeof own, given, name);
  return own;
}

template <Growing Struct>
void write_struct(Struct* out, const char* name, const Struct& value) {
  copy_struct_out(out, &value, sizeof value, name);
}

}  // namespace shardrec::capi
