// Things that were added to a set one by one, and are named by their number.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/error.h"

namespace shardrec::dense {

// The index of one of them, of which `count` were added; what: what it is. Throws NOT_FOUND.
inline size_t index_of_added(const char* what, int64_t index, size_t count) {
  const auto limit = static_cast<int64_t>(count);
  if (index >= 0 && index < limit) return static_cast<size_t>(index);
  core::fail(SHARDREC_NOT_FOUND,
             core::sentence("there is no ", what, " ", index, "; ", limit, " were added"),
             {.value = index, .limit = limit});
}

}  // namespace shardrec::dense
