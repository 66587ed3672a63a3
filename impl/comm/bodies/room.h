// Bodies side by side.
#pragma once

#include <cstddef>

#include "comm/communicator.h"
#include "core/align.h"

namespace shardrec::comm {

// Bytes that a body takes among others: it begins at a multiple of 64, as the rows in it do.
inline size_t room_of(ConstBytes body) { return core::align_up(body.size(), 64); }

}  // namespace shardrec::comm
