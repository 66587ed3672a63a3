// What this process has from malloc and has not given back, in bytes: malloc's own count. Unlike resident memory, no
// other program moves it, nor does memory that malloc keeps. A sanitizer has a malloc of its own, of which
// nothing is counted here.
#pragma once

#include <malloc.h>

#include <cstdint>

namespace shardrec::test {

inline int64_t bytes_in_use() noexcept {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks) + static_cast<int64_t>(info.hblkhd);
}

}  // namespace shardrec::test
