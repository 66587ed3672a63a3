// Where a NaN or an infinity is in a list in the host's memory.
#pragma once

#include <cstdint>

#include "shardrec/tensor.h"

namespace shardrec::compute {

// Position of the first one among count elements of a floating dtype; -1: all are finite. Any thread.
int64_t first_non_finite(const void* list, shardrec_dtype dtype, int64_t count) noexcept;

}  // namespace shardrec::compute
